/** Sessions by the day of their last message, in the time zone of this browser. */

import { clockTime } from "../text/times";

export type Day = "Today" | "Yesterday" | "Earlier";

export interface DayGroup<T> {
  day: Day;
  sessions: T[];
}

const WEEK = 7; // days

/** Group sessions by day, in their order. A day without sessions is left out. */
export function groupByDay<T extends { updated_at: string }>(sessions: readonly T[], now: number): DayGroup<T>[] {
  const groups: DayGroup<T>[] = [];
  for (const session of sessions) {
    const day = dayOf(new Date(session.updated_at), new Date(now));
    const group = groups.find((each) => each.day === day);
    if (group) group.sessions.push(session);
    else groups.push({ day, sessions: [session] });
  }
  return groups;
}

function dayOf(at: Date, now: Date): Day {
  const days = daysBefore(at, now);
  return days <= 0 ? "Today" : days === 1 ? "Yesterday" : "Earlier";
}

/** Count the midnights between two instants. A day with a clock change has 23 or 25 hours, hence the rounding. */
function daysBefore(at: Date, now: Date): number {
  const midnight = (date: Date) => new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();
  return Math.round((midnight(now) - midnight(at)) / 86_400_000);
}

/** Format a time under the heading of its day: "14:05", and "Mon" or "3 Nov" for earlier ones. */
export function timeInDay(at: Date, now: number): string {
  const today = new Date(now);
  const days = daysBefore(at, today);
  if (days <= 1) return clockTime(at);
  if (days < WEEK) return at.toLocaleDateString(undefined, { weekday: "short" });
  const isThisYear = at.getFullYear() === today.getFullYear();
  return at.toLocaleDateString(undefined, isThisYear ? { day: "numeric", month: "short" } : { dateStyle: "short" });
}
