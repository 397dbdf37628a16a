/** Scheduled runs, past and future, by day or week. */

import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link, useSearchParams } from "wouter";
import { explain } from "../../api/client";
import * as queries from "../../api/queries";
import type { AgendaShape, AgentShape } from "../../api/rest.generated";
import { Empty, Failure, Loading, PageHeader } from "../../components/frame/Page";
import { kindText, reasonOf, startText, statusOf } from "../../components/text/labels";
import { absolute, clockTime, inZone, useNow } from "../../components/text/times";
import { Icon } from "../../components/ui/Icon";
import { delayText } from "../../components/wakes/moves";
import { PauseRibbons } from "./PauseRibbons";
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
  last?: Date | undefined; // of several that are shown as one
}

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
        {queries.problemOf(agenda) ? (
          <Failure title="Agenda" text={explain(agenda.error)} retry={() => void agenda.refetch()} />
        ) : !agenda.data ? (
          <Loading what="the agenda" />
        ) : (
          <>
            <PauseRibbons agents={agents.filter((agent) => !agentId || agent.id === agentId)} />
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

interface DaysProps {
  agenda: AgendaShape;
  agents: AgentShape[];
  agentId: string;
  first: Date;
  count: number;
  now: number;
}

function Days({ agenda, agents, agentId, first, count, now }: DaysProps) {
  const entries = useMemo(
    () => toEntries(agenda, agents).filter((entry) => !agentId || entry.agentId === agentId),
    [agenda, agents, agentId],
  );
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
          count === 1,
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
  return <div className="now-line">{clockTime(new Date(now))} now</div>;
}

function EntryLink({ entry, agent }: { entry: Entry; agent: AgentShape | undefined }) {
  return (
    <Link href={entry.href} className={`agenda-entry is-${entry.tone}`}>
      <time dateTime={entry.at.toISOString()} title={inZone(entry.at, agent?.zone)}>
        {clockTime(entry.at)}
      </time>
      <span className="agenda-text">
        <strong>{entry.text}</strong>
        <span className="small muted">
          {agent?.name ?? "An agent"} · {entry.state}
          {entry.count > 1 && ` · ${entry.count} times`}
          {entry.last && `, the last ${clockTime(entry.last)}`}
        </span>
        {entry.moved && <span className="small muted">{entry.moved}</span>}
      </span>
    </Link>
  );
}

function toEntries({ ran, planned, held }: AgendaShape, agents: AgentShape[]): Entry[] {
  const daysOf = (agentId: string) => agents.find((agent) => agent.id === agentId)?.schedule.days;
  const past = ran
    .filter((run) => run.kind !== null)
    .map((run) => ({
      key: run.id,
      group: `${run.wake_id}:${run.status}:${run.note ?? ""}`,
      at: new Date(run.started_at ?? run.nominal_at),
      href: `/ui/runs/${run.id}`,
      agentId: run.agent_id,
      text: run.about || startText(run),
      tone: statusOf(run).tone,
      state: [statusOf(run).text, reasonOf(run)].filter(Boolean).join(": "),
      moved: null,
      count: Math.max(1, run.covers), // a run by hand covers no planned time
    }));
  const future = planned.map((each) => ({
    key: `${each.wake_id}:${each.at}`,
    group: each.wake_id,
    at: new Date(each.at),
    href: each.session_id ? `/ui/sessions/${each.session_id}` : `/ui/agents/${each.agent_id}`,
    agentId: each.agent_id,
    text: each.about || kindText(each.kind),
    tone: "planned",
    state: kindText(each.kind),
    moved: each.reason && `delayed: ${delayText(each.reason, daysOf(each.agent_id))}`,
    count: each.covers,
  }));
  const waiting = held.map((each) => ({
    key: `${each.wake_id}:${each.at}`,
    group: each.wake_id,
    at: new Date(each.at),
    href: each.session_id ? `/ui/sessions/${each.session_id}` : `/ui/agents/${each.agent_id}`,
    agentId: each.agent_id,
    text: each.about || kindText(each.kind),
    tone: "held",
    state: `${kindText(each.kind)} · on hold`,
    moved: each.at === each.nominal_at ? null : `since ${absolute(new Date(each.nominal_at), Date.now())}`,
    count: each.covers,
  }));
  return [...past, ...future, ...waiting].sort((one, other) => one.at.getTime() - other.at.getTime());
}

/** Show many entries of one wake within a day, or within an hour of it, as one. */
function fold(entries: Entry[], isByHour: boolean): Entry[] {
  const groups = Map.groupBy(entries, (entry) => `${entry.group}:${isByHour ? entry.at.getHours() : ""}`);
  return [...groups.values()]
    .flatMap((group) => {
      const [head] = group;
      if (group.length < FOLD_FROM || !head) return group;
      const isEach = group.every((entry) => entry.count === 1); // else the times after an entry are not known
      const count = group.reduce((sum, entry) => sum + entry.count, 0);
      return [{ ...head, count, last: isEach ? group.at(-1)?.at : undefined }];
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
