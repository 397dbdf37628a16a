/** The sessions in the sidebar: conversations, and apart from them the sessions of scheduled runs. */

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { useLocation } from "wouter";
import * as queries from "../../api/queries";
import type { SessionShape } from "../../api/rest.generated";
import { MAX_LENGTH } from "../../api/server.generated";
import { useNow } from "../text/times";
import { Icon } from "../ui/Icon";
import { useDebounced } from "../ui/useDebounced";
import { groupByDay } from "./days";
import { addressOf, SessionRow, StateMark, stateOf } from "./SessionRow";
import "./SessionList.css";

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
            placeholder="Filter by title"
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
              ? { ...(wanted && { q: wanted }), ...(isScheduledOnly && { has_wake: true }) }
              : { unattended: false }
          }
          label="Sessions"
          isByDay
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
  const states = found.map(stateOf);
  const foundState = (["waiting", "running"] as const).find((state) => states.includes(state));
  const toggle = () => {
    localStorage.setItem(KEY, isShown ? "closed" : "open");
    setOpen(!isShown);
  };
  return (
    <div className="scheduled-sessions">
      <button type="button" className="quiet small fold" aria-expanded={isShown} onClick={toggle}>
        <Icon name="clock" size={14} />
        <span className="grow">Runs</span>
        {foundState && <StateMark state={foundState} />}
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
  isByDay?: boolean;
  empty?: string;
}

function Sessions({ filter, label, isByDay = false, empty }: SessionsProps) {
  const sessions = useInfiniteQuery(queries.sessions(filter));
  const shown = (sessions.data?.pages ?? []).flatMap((page) => page.sessions);
  return (
    <>
      <ul aria-label={label}>{isByDay ? <Days sessions={shown} /> : <Rows sessions={shown} />}</ul>
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

function Days({ sessions }: { sessions: SessionShape[] }) {
  const id = useId();
  const now = useNow(60);
  return groupByDay(sessions, now).map(({ day, sessions: ofDay }) => (
    <li key={day}>
      <h2 id={`${id}${day}`} className="session-day">
        {day}
      </h2>
      <ul aria-labelledby={`${id}${day}`}>
        <Rows sessions={ofDay} />
      </ul>
    </li>
  ));
}

function Rows({ sessions }: { sessions: SessionShape[] }) {
  const agents = useQuery(queries.agents).data;
  return sessions.map((session) => (
    <SessionRow key={session.id} session={session} agent={agents?.find((agent) => agent.id === session.agent_id)} />
  ));
}
