import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { BASE } from "../../api/base";
import { call, explain } from "../../api/client";
import { leave } from "../../api/push";
import * as queries from "../../api/queries";
import { forgetSecret } from "../../api/secret";
import { openInTab } from "../../api/tickets";
import { PageHeader } from "../../components/frame/Page";
import { applyTheme, currentTheme, type Theme } from "../../components/frame/theme";
import { overlay } from "../../components/keyboard/overlay";
import { setShortcutsOn, useShortcutsOn } from "../../components/keyboard/setting";
import { Fact, Facts } from "../../components/ui/Facts";
import { SettingsSection } from "../../components/ui/SettingsSection";
import { BrowserNotifications } from "../inbox/InboxView";
import { Backups } from "./Backups";
import { Channels } from "./Channels";
import { Models } from "./Models";
import { Nodes } from "./Nodes";
import { People } from "./People";
import { Push } from "./Push";
import { Storage } from "./Storage";
import { Tokens } from "./Tokens";
import { Webhooks } from "./Webhooks";
import { You } from "./You";
import "./SettingsView.css";

export default function SettingsView() {
  const me = useQuery(queries.me).data;
  const isShared = useQuery(queries.about).data?.store === "postgresql";
  const isAdmin = me?.scope === "admin";
  return (
    <div className="page">
      <PageHeader title="Settings" />
      <div className="page-body">
        <ServerFacts />
        {isAdmin && me.user.role === "owner" && <Models />}
        <ThisBrowser />
        {isAdmin && <You />}
        {isAdmin && <Push />}
        {isAdmin && <Channels />}
        {isAdmin && <Webhooks />}
        {isAdmin && <Tokens />}
        {isAdmin && me.user.role === "owner" && <People meId={me.user.id} />}
        {isAdmin && me.user.role === "owner" && isShared && <Nodes />}
        {me?.user.role === "owner" && <Storage />}
        {me?.user.role === "owner" && <Backups />}
        <About />
      </div>
    </div>
  );
}

const SHELL = {
  bubblewrap: "confined to the agent's workspace by bubblewrap",
  landlock: "confined to the agent's workspace by Landlock",
  unconfined: <span className="bad-text">unconfined, as set in the settings file (shell_unconfined)</span>,
  refused: <span className="bad-text">disabled: this machine has neither bubblewrap nor Landlock to confine them</span>,
} as const;

function ServerFacts() {
  const about = useQuery(queries.about).data;
  const ready = useQuery(queries.readiness);
  const me = useQuery(queries.me).data;
  return (
    <SettingsSection title="Server" text="What is running here, and your account.">
      <Facts>
        <Fact name="Version">Wakeful {about?.version}</Fact>
        <Fact name="Store">
          {about?.store === "postgresql" ? "PostgreSQL" : "SQLite, in the server's data directory"}
        </Fact>
        <Fact name="Scheduler">
          {ready.isError ? (
            <span className="bad-text">not running: {explain(ready.error)}</span>
          ) : ready.isSuccess ? (
            "running"
          ) : (
            "…"
          )}
        </Fact>
        <Fact name="Default model">
          {about?.model}
          {about?.is_demo && " (built in, not an LLM)"}
        </Fact>
        <Fact name="Commands">{about && SHELL[about.shell]}</Fact>
        <Fact name="You">
          {me?.user.name} ({me?.user.role === "owner" ? "owner" : "member"})
        </Fact>
      </Facts>
    </SettingsSection>
  );
}

function ThisBrowser() {
  const [theme, setTheme] = useState<Theme>(currentTheme);
  const hasShortcuts = useShortcutsOn();
  const logOut = queries.useAct(
    () => leave().then(() => call("POST /logout")),
    [],
    () => {
      forgetSecret();
      location.assign(`${BASE}/`);
    },
  );
  return (
    <SettingsSection title="This browser" text="Stored in this browser, not on the server.">
      <div className="segments" role="group" aria-label="Colours">
        {(["auto", "light", "dark"] as const).map((each) => (
          <button
            key={each}
            type="button"
            aria-pressed={theme === each}
            onClick={() => {
              applyTheme(each);
              setTheme(each);
            }}
          >
            {each === "auto" ? "System" : each === "light" ? "Light" : "Dark"}
          </button>
        ))}
      </div>
      <label className="check">
        <input type="checkbox" checked={hasShortcuts} onChange={(event) => setShortcutsOn(event.target.checked)} />
        Keyboard shortcuts
      </label>
      <p className="muted small">
        Single keys such as N for a new session, while you are not typing. Turn them off if they get in the way of a
        screen reader or of dictation.{" "}
        <button type="button" className="small" onClick={() => overlay.set({ kind: "sheet" })}>
          Show all
        </button>
      </p>
      <p className="row">
        <BrowserNotifications hasLabel />
        <button type="button" onClick={() => logOut.mutate(undefined)}>
          Log out
        </button>
      </p>
    </SettingsSection>
  );
}

function About() {
  const about = useQuery(queries.about).data;
  return (
    <SettingsSection title="About" text="Agents that set their own alarm.">
      <p>
        Wakeful {about?.version}. This page loads nothing from other sites. Data leaves this server only through models,
        channels, webhooks, push messages, monitoring services, traces, backups, MCP servers, the web pages that agents
        fetch, and commands if the settings file gives them network access.
      </p>
      <p className="row">
        <button type="button" onClick={() => void openInTab("/docs")}>
          API reference
        </button>
        <button type="button" onClick={() => void openInTab("/openapi.json")}>
          openapi.json
        </button>
      </p>
    </SettingsSection>
  );
}
