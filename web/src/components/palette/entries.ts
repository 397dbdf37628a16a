/** Everything that the palette offers: actions, places, agents, sessions, tables and views. */

import { useInfiniteQuery, useQueries, useQuery } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { call } from "../../api/client";
import { database } from "../../api/database";
import { showPageError } from "../../api/pageError";
import * as queries from "../../api/queries";
import type { AgentShape, DatabaseShape, NewPause, PauseShape, SessionShape } from "../../api/rest.generated";
import { applyTheme, type Theme } from "../frame/theme";
import type { Command } from "../keyboard/keys";
import { overlay } from "../keyboard/overlay";
import type { IconName } from "../ui/Icon";
import type { Entry } from "./choose";

/** Return the entries, those of databases only when they are wanted: each takes a request per agent. */
export function useEntries(withDatabases: boolean): Entry[] {
  const [location] = useLocation();
  const agents = useQuery(queries.agents).data ?? [];
  const pause = useQuery(queries.pauseOfAll).data ?? null;
  const talks = useInfiniteQuery(queries.sessions({ unattended: false })).data;
  const woken = useInfiniteQuery(queries.sessions({ unattended: true })).data;
  const sessions = [talks, woken].flatMap((each) => (each?.pages ?? []).flatMap((page) => page.sessions));
  const owners = agents.filter((agent) => agent.toolsets.includes("database"));
  const databases = useQueries({
    queries: owners.map((agent) => ({ ...database(agent.id), enabled: withDatabases, staleTime: 60_000 })),
  });
  return [
    ...actions(agents, pause, location),
    ...places(),
    ...agents.map(ofAgent),
    ...sessions.map((session) => ofSession(session, agents)),
    ...owners.flatMap((agent, index) => ofDatabase(agent, databases[index]?.data)),
  ];
}

function actions(agents: AgentShape[], pause: PauseShape | null, location: string): Entry[] {
  const action = (text: string, icon: IconName, does: Entry["does"], more: Partial<Entry> = {}): Entry => ({
    id: `action ${text}`,
    group: "Actions",
    icon,
    text,
    does,
    ...more,
  });
  const openSession = /^\/ui\/sessions\/([^/]+)$/.exec(location)?.[1];
  return [
    action("New session", "plus", "/", { command: "new", keywords: "chat conversation" }),
    ...(agents.length > 1 ? agents : []).map((agent) =>
      action(`New session with ${agent.name}`, "plus", `/?agent=${agent.id}`, { keywords: "chat conversation" }),
    ),
    ...(openSession ? scheduleHere(openSession, agents, action) : []),
    ...agents.map((agent) =>
      action(
        `Schedule the next run of ${agent.name}`,
        "clock",
        () => overlay.set({ kind: "schedule", agentId: agent.id, sessionId: null }),
        { keywords: "schedule a run book alarm wake" },
      ),
    ),
    ...pauses(pause).map(([text, act]) =>
      action(text, pause ? "play" : "pause", act, { keywords: "pause all hold stop scheduled runs" }),
    ),
    ...THEMES.map(([text, theme]) =>
      action(text, "settings", () => applyTheme(theme), { keywords: "switch theme colours mode" }),
    ),
    action("Keyboard shortcuts", "more", () => overlay.set({ kind: "sheet" }), { command: "sheet", keywords: "help" }),
  ];
}

type MakeAction = (text: string, icon: IconName, does: Entry["does"], more?: Partial<Entry>) => Entry;

function scheduleHere(sessionId: string, agents: AgentShape[], action: MakeAction): Entry[] {
  const session = queries.queryClient.getQueryData(queries.session(sessionId).queryKey);
  const agent = agents.find((each) => each.id === session?.agent_id);
  if (!agent) return [];
  const open = () => overlay.set({ kind: "schedule", agentId: agent.id, sessionId });
  return [action("Schedule a run in this session", "clock", open, { keywords: "book alarm recall wake" })];
}

const THEMES: [string, Theme][] = [
  ["Theme: light", "light"],
  ["Theme: dark", "dark"],
  ["Theme: system", "auto"],
];

const PRESETS: [string, NewPause["preset"]][] = [
  ["Pause everything for 1 hour", "1h"],
  ["Pause everything for 4 hours", "4h"],
  ["Pause everything until tomorrow", "tomorrow"],
  ["Pause everything until you resume", "indefinitely"],
];

function pauses(pause: PauseShape | null): [string, () => void][] {
  if (pause) return [["Resume everything", () => change(call("DELETE /pause"))]];
  return PRESETS.map(([text, preset]) => [text, () => change(call("PUT /pause", { body: { preset } }))]);
}

/** Wait for a change of the pause; the events of the server update the page. */
function change(work: Promise<unknown>): void {
  work.then(() => queries.queryClient.invalidateQueries({ queryKey: ["pause"] })).catch(showPageError);
}

function places(): Entry[] {
  const place = (text: string, icon: IconName, does: string, command: Command): Entry => ({
    id: does,
    group: "Go to",
    icon,
    text,
    does,
    command,
    keywords: "go to open",
  });
  return [
    place("Agenda", "calendar", "/ui/agenda", "agenda"),
    place("Inbox", "inbox", "/ui/inbox", "inbox"),
    place("Agents", "agent", "/ui/agents", "agents"),
    place("Settings", "settings", "/ui/settings", "settings"),
  ];
}

function ofAgent(agent: AgentShape): Entry {
  return {
    id: `agent ${agent.id}`,
    group: "Agents",
    icon: "agent",
    text: agent.name,
    keywords: `agent configure ${agent.description}`,
    does: `/ui/agents/${agent.id}`,
  };
}

function ofSession(session: SessionShape, agents: AgentShape[]): Entry {
  const agent = agents.find((each) => each.id === session.agent_id);
  return {
    id: `session ${session.id}`,
    group: "Sessions",
    icon: session.origin_wake_id ? "clock" : "chat",
    text: session.title || "New session",
    ...(agent && { detail: agent.name }),
    does: `/ui/sessions/${session.id}`,
  };
}

function ofDatabase(agent: AgentShape, found: DatabaseShape | undefined): Entry[] {
  const entry = (group: "Tables" | "Views", icon: IconName, name: string, does: string): Entry => ({
    id: `${group} ${agent.id} ${name}`,
    group,
    icon,
    text: name,
    detail: agent.name,
    keywords: `${group} ${agent.name}`,
    does,
  });
  const at = `/ui/agents/${agent.id}`;
  return [
    ...(found?.tables ?? []).map(({ name }) =>
      entry("Tables", "table", name, `${at}/data?table=${encodeURIComponent(name)}`),
    ),
    ...(found?.views ?? []).map(({ name }) =>
      entry("Views", "chart", name, `${at}/views?view=${encodeURIComponent(name)}`),
    ),
  ];
}
