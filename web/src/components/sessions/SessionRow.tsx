/** A session in the sidebar: agent, title, time, and marks for its state and its scheduled run. */

import { useEffect, useRef } from "react";
import { Link, useLocation } from "wouter";
import type { AgentShape, RecallShape, SessionShape } from "../../api/rest.generated";
import { inZone, Time, useNow } from "../text/times";
import { Icon } from "../ui/Icon";
import { AgentMark } from "./AgentMark";
import { timeInDay } from "./days";
import "./SessionRow.css";

export type SessionState = "waiting" | "running" | "failed";

/** Return the state that a session is marked with. */
export function stateOf(session: SessionShape): SessionState | null {
  if (session.needs_approval) return "waiting";
  if (session.is_running) return "running";
  return session.is_failed ? "failed" : null;
}

export function addressOf(session: { id: string }): string {
  return `/ui/sessions/${session.id}`;
}

export function SessionRow({ session, agent }: { session: SessionShape; agent: AgentShape | undefined }) {
  const [location] = useLocation();
  const row = useRef<HTMLLIElement>(null);
  const href = addressOf(session);
  const isHere = location === href;
  const state = stateOf(session);
  useEffect(() => {
    if (isHere) row.current?.scrollIntoView({ block: "nearest" });
  }, [isHere]);
  return (
    <li ref={row}>
      <Link href={href} className="session-row" aria-current={isHere ? "page" : undefined}>
        <AgentMark agent={agent} />
        <span className="session-text">
          <span className="session-title">{session.title || "New session"}</span>
          <span className="hidden">, {agent?.name ?? "its agent was deleted"}, </span>
          {session.origin_wake_id && (
            <span className="muted small">
              <Time at={session.created_at} />
            </span>
          )}
        </span>
        {session.recall && <RecallMark recall={session.recall} />}
        {state && <StateMark state={state} />}
        {(state === null || state === "failed") && !session.origin_wake_id && <LastChange at={session.updated_at} />}
      </Link>
    </li>
  );
}

function LastChange({ at }: { at: string }) {
  const now = useNow(60);
  const date = new Date(at);
  return (
    <time className="muted small" dateTime={at} title={inZone(date, undefined)}>
      {timeInDay(date, now)}
    </time>
  );
}

const STATES = {
  waiting: { label: "needs approval", title: "A call waits for your approval", content: "?" },
  running: { label: "running", title: "Running", content: null },
  failed: { label: "failed", title: "Its last run failed", content: <Icon name="alert" size={14} /> },
};

export function StateMark({ state }: { state: SessionState }) {
  const { label, title, content } = STATES[state];
  return (
    <span className={`state-mark is-${state}`} role="img" aria-label={label} title={title}>
      {content}
    </span>
  );
}

/** A session with a scheduled run, or with one that a pause holds. */
function RecallMark({ recall: { trigger_at, is_paused } }: { recall: RecallShape }) {
  const at = new Date(trigger_at).toLocaleString();
  return (
    <span
      className="session-clock"
      role="img"
      aria-label={is_paused ? "run on hold" : "run scheduled"}
      title={is_paused ? `Scheduled run of ${at}: on hold, the agent is paused` : `Scheduled run: ${at}`}
    >
      <Icon name={is_paused ? "pause" : "clock"} size={14} />
    </span>
  );
}
