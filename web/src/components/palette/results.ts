/** Results of the search in messages, as entries of the palette. */

import type { AgentShape, SearchResult } from "../../api/rest.generated";
import { absolute } from "../text/times";
import type { Entry } from "./choose";
import type { Range } from "./fuzzy";

/** Return the messages that were found, and the sessions that were found by their title and are not listed yet. */
export function toEntries(
  results: readonly SearchResult[],
  listed: readonly Entry[],
  agents: readonly AgentShape[],
): { messages: Entry[]; sessions: Entry[] } {
  const known = new Set(listed.map((entry) => entry.id));
  const messages = results.flatMap((result) => (result.message_id === null ? [] : [ofMessage(result, agents)]));
  const sessions = results.flatMap((result) => (result.message_id === null ? [ofTitle(result)] : []));
  return { messages, sessions: sessions.filter((entry) => !known.has(entry.id)) };
}

function ofMessage(result: SearchResult, agents: readonly AgentShape[]): Entry {
  const { message_id, agent_id, session_id, session_title, role, created_at, snippet, matches } = result;
  const who = role === "user" ? "You" : agents.find((each) => each.id === agent_id)?.name;
  const when = absolute(new Date(created_at), Date.now());
  return {
    id: `message ${message_id}`,
    group: "Messages",
    icon: role === "user" ? "send" : "chat",
    text: session_title || "New session",
    detail: who ? `${who}, ${when}` : when,
    snippet: { text: snippet, ranges: matches as unknown as Range[] },
    does: `/ui/sessions/${session_id}?message=${encodeURIComponent(message_id ?? "")}`,
  };
}

function ofTitle({ session_id, session_title, created_at }: SearchResult): Entry {
  return {
    id: `session ${session_id}`,
    group: "Sessions",
    icon: "chat",
    text: session_title || "New session",
    detail: absolute(new Date(created_at), Date.now()),
    does: `/ui/sessions/${session_id}`,
  };
}
