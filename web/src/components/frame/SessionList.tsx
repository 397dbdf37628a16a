/** The sessions in the sidebar: conversations, and apart from them the sessions of scheduled runs. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import * as queries from "../../api/queries";
import type { RecallShape, SessionShape } from "../../api/rest.generated";
import { MAX_LENGTH } from "../../api/server.generated";
import { Time } from "../text/times";
import { Icon } from "../ui/Icon";
import { useDebounced } from "../ui/useDebounced";

export function SessionList() {
  const [search, setSearch] = useState("");
  const [isScheduledOnly, setScheduledOnly] = useState(false);
  const wanted = useDebounced(search.trim(), 150);
  const isFiltered = wanted !== "" || isScheduledOnly;
  return (
    <div className="sessions">
      <div className="session-tools">
        <label className="search">
          <Icon name="search" size={15} />
          <span className="hidden">Search sessions</span>
          <input
            type="search"
            placeholder="Search sessions"
            maxLength={MAX_LENGTH.SessionChange.title}
            value={search}
            onChange={(event) => setSearch(event.target.value)}
          />
        </label>
        <button
          type="button"
          className="quiet icon-only"
          aria-pressed={isScheduledOnly}
          aria-label="Only sessions with a scheduled run"
          title="Only sessions with a scheduled run"
          onClick={() => setScheduledOnly(!isScheduledOnly)}
        >
          <Icon name="clock" />
        </button>
      </div>
      <div className="session-lists">
        {!isFiltered && <ScheduledRuns />}
        <Sessions
          filter={
            isFiltered
              ? { ...(wanted && { q: wanted }), ...(isScheduledOnly && { has_recall: true }) }
              : { unattended: false }
          }
          label="Sessions"
          empty={
            wanted
              ? `No session matches “${wanted}”.`
              : isScheduledOnly
                ? "No session has a scheduled run."
                : "Your sessions will appear here."
          }
        />
      </div>
    </div>
  );
}

const KEY = "wakeful.scheduled-runs"; // whether the group is open
const UNATTENDED = { unattended: true };

/** Sessions that a scheduled run began and nobody has written in: an agent may make dozens of them in a week. */
function ScheduledRuns() {
  const [isOpen, setOpen] = useState(localStorage.getItem(KEY) === "open");
  const [location] = useLocation();
  const sessions = useInfiniteQuery(queries.sessions(UNATTENDED));
  const found = (sessions.data?.pages ?? []).flatMap((page) => page.sessions);
  if (found.length === 0) return null;
  const isShown = isOpen || found.some((session) => location === addressOf(session));
  const toggle = () => {
    localStorage.setItem(KEY, isShown ? "closed" : "open");
    setOpen(!isShown);
  };
  return (
    <div className="scheduled-sessions">
      <button type="button" className="quiet small fold" aria-expanded={isShown} onClick={toggle}>
        <Icon name="clock" size={14} />
        <span className="grow">Runs</span>
        {found.some((session) => session.is_running) && <Dot state="running" />}
        <span className="muted small">
          {found.length}
          {sessions.hasNextPage && "+"}
        </span>
        <Icon name="chevron" size={14} />
      </button>
      {isShown && <Sessions filter={UNATTENDED} label="Runs" />}
    </div>
  );
}

interface SessionsProps {
  filter: Parameters<typeof queries.sessions>[0];
  label: string;
  empty?: string;
}

function Sessions({ filter, label, empty }: SessionsProps) {
  const sessions = useInfiniteQuery(queries.sessions(filter));
  const shown = (sessions.data?.pages ?? []).flatMap((page) => page.sessions);
  return (
    <>
      <ul aria-label={label}>
        {shown.map((session) => (
          <SessionRow key={session.id} session={session} />
        ))}
      </ul>
      {sessions.hasNextPage && (
        <button
          type="button"
          className="quiet small"
          disabled={sessions.isFetchingNextPage}
          onClick={() => void sessions.fetchNextPage()}
        >
          Show more
        </button>
      )}
      {empty && sessions.data && !sessions.isPlaceholderData && shown.length === 0 && (
        <p className="muted small pad">{empty}</p>
      )}
    </>
  );
}

function addressOf(session: SessionShape): string {
  return `/ui/sessions/${session.id}`;
}

function SessionRow({ session }: { session: SessionShape }) {
  const [location] = useLocation();
  const href = addressOf(session);
  return (
    <li>
      <Link href={href} className="session-row" aria-current={location === href ? "page" : undefined}>
        <span className="session-text">
          <span className="session-title">{session.title || "New session"}</span>
          {session.origin_wake_id && (
            <span className="muted small">
              <Time at={session.created_at} />
            </span>
          )}
        </span>
        {session.is_running ? <Dot state="running" /> : session.is_failed && <Dot state="failed" />}
        {session.recall && <RecallMark recall={session.recall} />}
      </Link>
    </li>
  );
}

function Dot({ state }: { state: "running" | "failed" }) {
  return (
    <span
      className={`dot is-${state}`}
      role="img"
      aria-label={state}
      title={state === "running" ? "Running" : "Its last run failed"}
    />
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
