/** Scheduled runs, past and future, by day or week. */

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link, useSearchParams } from "wouter";
import { explain } from "../api/client";
import * as queries from "../api/queries";
import type { AgendaShape, AgentShape, PauseShape } from "../api/rest.generated";
import { Icon } from "../components/Icon";
import { kindText, reasonOf, reasonText, statusOf } from "../components/labels";
import { Empty, Failure, Loading, PageHeader } from "../components/Page";
import { PausedUntil } from "../components/PauseMenu";
import { inZone, useNow } from "../components/times";
import "./AgendaView.css";

interface Entry {
  key: string;
  group: string; // entries of one wake that may be shown as one
  at: Date;
  href: string;
  agentId: string;
  text: string;
  tone: string;
  state: string;
  moved: string | null;
  count: number;
}

const DAY = 86_400_000;
const FOLD_FROM = 4; // this many runs of one wake in a day (in the day view: an hour) are shown as one

export default function AgendaView() {
  const [params, setParams] = useSearchParams();
  const view = params.get("view") === "day" ? "day" : "week";
  const agentId = params.get("agent") ?? "";
  const now = useNow(15);
  const day = params.get("date") ? startOfDay(new Date(`${params.get("date")}T12:00`)) : startOfDay(new Date(now));
  const first = view === "day" ? day : startOfWeek(day);
  const end = addDays(first, view === "day" ? 1 : 7);
  const agenda = useQuery({ ...queries.agenda(first, end), placeholderData: (before) => before });
  const agents = useQuery(queries.agents).data ?? [];
  const set = (change: Record<string, string>) =>
    setParams(
      Object.fromEntries(
        Object.entries({ view, agent: agentId, date: isoDay(day), ...change }).filter(([, value]) => value),
      ),
      { replace: true },
    );

  return (
    <div className="page">
      <PageHeader title="Agenda">
        {agents.length > 1 && (
          <select aria-label="Agent" value={agentId} onChange={(event) => set({ agent: event.target.value })}>
            <option value="">All agents</option>
            {agents.map((agent) => (
              <option key={agent.id} value={agent.id}>
                {agent.name}
              </option>
            ))}
          </select>
        )}
        <div className="segments" role="group" aria-label="Show">
          {(["day", "week"] as const).map((each) => (
            <button key={each} type="button" aria-pressed={view === each} onClick={() => set({ view: each })}>
              {each === "day" ? "Day" : "Week"}
            </button>
          ))}
        </div>
      </PageHeader>
      <div className="agenda-bar">
        <button
          type="button"
          className="quiet icon-only"
          aria-label="Earlier"
          onClick={() => set({ date: isoDay(addDays(day, view === "day" ? -1 : -7)) })}
        >
          <Icon name="back" />
        </button>
        <button
          type="button"
          className="quiet icon-only"
          aria-label="Later"
          onClick={() => set({ date: isoDay(addDays(day, view === "day" ? 1 : 7)) })}
        >
          <Icon name="chevron" />
        </button>
        <button type="button" className="small" onClick={() => set({ date: isoDay(new Date()) })}>
          Today
        </button>
        <h2>{rangeText(first, end)}</h2>
      </div>
      <div className="page-body">
        {agenda.isError ? (
          <Failure title="Agenda" text={explain(agenda.error)} retry={() => void agenda.refetch()} />
        ) : !agenda.data ? (
          <Loading what="the agenda" />
        ) : (
          <>
            <PausedNotices agents={agents.filter((agent) => !agentId || agent.id === agentId)} />
            <Days
              agenda={agenda.data}
              agents={agents}
              agentId={agentId}
              first={first}
              count={view === "day" ? 1 : 7}
              now={now}
            />
          </>
        )}
      </div>
    </div>
  );
}

/** The pauses: without them, an agenda from which a pause keeps runs away would say that there are none. */
function PausedNotices({ agents }: { agents: AgentShape[] }) {
  const everything = useQuery(queries.pauseOfAll).data;
  if (everything) return <PausedNotice what="Everything" pause={everything} />;
  return agents.map((agent) => <PausedAgent key={agent.id} agent={agent} />);
}

function PausedAgent({ agent }: { agent: AgentShape }) {
  const pause = useQuery(queries.agentPause(agent.id)).data?.pause;
  return pause && <PausedNotice what={agent.name} pause={pause} zone={agent.zone} />;
}

function PausedNotice({ what, pause, zone }: { what: string; pause: PauseShape; zone?: string | undefined }) {
  return (
    <p className="agenda-paused">
      <Icon name="pause" size={15} />
      <span>
        {what} is paused <PausedUntil pause={pause} zone={zone} />. Scheduled runs are on hold.
      </span>
    </p>
  );
}

interface DaysProps {
  agenda: AgendaShape;
  agents: AgentShape[];
  agentId: string;
  first: Date;
  count: number;
  now: number;
}

function Days({ agenda, agents, agentId, first, count, now }: DaysProps) {
  const sessions = useInfiniteQuery(queries.sessions({})).data?.pages[0]?.sessions;
  const entries = useMemo(() => {
    const titles = new Map(sessions?.map((session) => [session.id, session.title]));
    return toEntries(agenda, titles).filter((entry) => !agentId || entry.agentId === agentId);
  }, [agenda, agentId, sessions]);
  if (entries.length === 0) {
    return (
      <Empty icon="calendar" title="No scheduled runs in this period">
        <p>Ask an agent to do something later, as in “In 10 seconds check notes.txt”, and it appears here.</p>
      </Empty>
    );
  }
  return (
    <div className={count === 1 ? "agenda-days is-day" : "agenda-days"}>
      {Array.from({ length: count }, (_, index) => addDays(first, index)).map((day) => {
        const ofDay = fold(
          entries.filter((entry) => entry.at >= day && entry.at < addDays(day, 1)),
          count === 1 ? 3_600_000 : DAY,
        );
        const isToday = isoDay(day) === isoDay(new Date(now));
        const firstLater = ofDay.findIndex((entry) => entry.at.getTime() > now);
        return (
          <section
            key={day.toISOString()}
            className={isToday ? "agenda-day is-today" : "agenda-day"}
            aria-label={day.toDateString()}
          >
            <h3>
              {day.toLocaleDateString(undefined, { weekday: "short" })} <span className="muted">{day.getDate()}</span>
            </h3>
            <ol>
              {ofDay.map((entry, index) => (
                <li key={entry.key}>
                  {isToday && index === firstLater && <NowLine now={now} />}
                  <EntryLink entry={entry} agent={agents.find((each) => each.id === entry.agentId)} />
                </li>
              ))}
            </ol>
            {isToday && firstLater < 0 && <NowLine now={now} />}
            {ofDay.length === 0 && !isToday && <p className="muted small nothing">–</p>}
          </section>
        );
      })}
    </div>
  );
}

function NowLine({ now }: { now: number }) {
  return (
    <div className="now-line">
      {new Date(now).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" })} now
    </div>
  );
}

function EntryLink({ entry, agent }: { entry: Entry; agent: AgentShape | undefined }) {
  return (
    <Link href={entry.href} className={`agenda-entry is-${entry.tone}`}>
      <time dateTime={entry.at.toISOString()} title={inZone(entry.at, agent?.zone)}>
        {entry.at.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" })}
      </time>
      <span className="agenda-text">
        <strong>{entry.text}</strong>
        <span className="small muted">
          {agent?.name ?? "An agent"} · {entry.state}
          {entry.count > 1 && ` · ${entry.count} times`}
        </span>
        {entry.moved && <span className="small muted">delayed: {entry.moved}</span>}
      </span>
    </Link>
  );
}

function toEntries({ ran, planned }: AgendaShape, titles: Map<string, string>): Entry[] {
  const past = ran
    .filter((run) => run.kind !== null)
    .map((run) => ({
      key: run.id,
      group: `${run.wake_id}:${run.status}:${run.note ?? ""}`,
      at: new Date(run.started_at ?? run.nominal_at),
      href: `/ui/runs/${run.id}`,
      agentId: run.agent_id,
      text: titles.get(run.session_id ?? "") || kindText(run.kind),
      tone: statusOf(run).tone,
      state: [`${kindText(run.kind)} ${statusOf(run).text}`, reasonOf(run)].filter(Boolean).join(": "),
      moved: null,
      count: run.covers,
    }));
  const future = planned.map((each) => ({
    key: `${each.wake_id}:${each.at}`,
    group: each.wake_id,
    at: new Date(each.at),
    href: each.session_id ? `/ui/sessions/${each.session_id}` : `/ui/agents/${each.agent_id}`,
    agentId: each.agent_id,
    text: each.comment || kindText(each.kind),
    tone: "planned",
    state: each.comment ? `${kindText(each.kind)} planned` : "planned",
    moved: each.reason && reasonText(each.reason),
    count: each.covers,
  }));
  return [...past, ...future].sort((one, other) => one.at.getTime() - other.at.getTime());
}

/** Show many entries of one wake within a period as one. */
function fold(entries: Entry[], periodMs: number): Entry[] {
  const groups = Map.groupBy(entries, (entry) => `${entry.group}:${Math.floor(entry.at.getTime() / periodMs)}`);
  return [...groups.values()]
    .flatMap((group) => {
      const [head] = group;
      if (group.length < FOLD_FROM || !head) return group;
      return [{ ...head, count: group.reduce((sum, entry) => sum + entry.count, 0) }];
    })
    .sort((one, other) => one.at.getTime() - other.at.getTime());
}

function startOfDay(date: Date): Date {
  return new Date(date.getFullYear(), date.getMonth(), date.getDate());
}

function startOfWeek(date: Date): Date {
  return addDays(startOfDay(date), -((date.getDay() + 6) % 7));
}

function addDays(date: Date, days: number): Date {
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() + days);
}

function isoDay(date: Date): string {
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
}

function rangeText(first: Date, end: Date): string {
  const last = addDays(end, -1);
  const long: Intl.DateTimeFormatOptions = { day: "numeric", month: "long", year: "numeric" };
  if (first.getTime() === last.getTime()) return first.toLocaleDateString(undefined, { weekday: "long", ...long });
  return new Intl.DateTimeFormat(undefined, long).formatRange(first, last);
}
