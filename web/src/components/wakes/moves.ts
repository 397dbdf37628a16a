/** Why a run has another time than was asked for. */

import type { AgentShape, BookingShape } from "../../api/rest.generated";
import { byWhom, MODES, reasonText } from "../text/labels";
import { duration } from "../text/times";

/** Why a booking was moved: "Reactive looks at most 24 h ahead". */
export function moveText(reason: string, { schedule }: AgentShape): string {
  if (reason === "max_horizon")
    return `${MODES[schedule.mode].label} looks at most ${span(schedule.max_horizon_seconds)} ahead`;
  if (reason === "min_interval") return `runs are at least ${span(schedule.min_interval_seconds)} apart`;
  return delayText(reason, schedule.days);
}

const DAYS = ["Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays"];

/** Why a run is delayed; `days` are those on which its agent may run: "not on Sundays", "only on Mondays". */
export function delayText(reason: string, days: readonly number[] | undefined): string {
  if (reason !== "day_not_allowed" || !days?.length || days.length === DAYS.length) return reasonText(reason);
  const isFew = days.length <= 2;
  const named = DAYS.filter((_, index) => days.includes(index) === isFew);
  const listed = new Intl.ListFormat("en", { type: isFew ? "conjunction" : "disjunction" }).format(named);
  return `${isFew ? "only" : "not"} on ${listed}`;
}

/** Return the requested time and why another one was booked; null if it was booked as requested. */
export function bookingText(booking: BookingShape | null, agent: AgentShape): string | null {
  if (!booking || booking.moved_by.length === 0) return null;
  return `asked for “${booking.requested}”: ${booking.moved_by.map((reason) => moveText(reason, agent)).join(", ")}`;
}

/** The same of a scheduled run; null too if it has moved on since, as a recurring one does. */
export function movedText(
  wake: { booking: BookingShape | null; nominal_at: string },
  agent: AgentShape,
): string | null {
  const isCurrent = wake.booking && Date.parse(wake.booking.final) === Date.parse(wake.nominal_at);
  return isCurrent ? bookingText(wake.booking, agent) : null;
}

/** Say who scheduled a run and how, what it had read, and who has moved it since: "by the agent, moved by you". */
export function scheduledBy(wake: {
  scheduled_by: string;
  booking: BookingShape | null;
  through: string | null;
  has_read: string | null;
}): string {
  const mover = wake.booking?.changed_by;
  // A hook's own run names the hook already.
  const read = wake.has_read && !wake.through ? `, booked by a run that had read ${wake.has_read}` : "";
  const by = [byWhom(wake.scheduled_by), wake.through].filter(Boolean).join(" ") + read;
  return by + (mover && mover !== wake.scheduled_by ? `, moved ${byWhom(mover)}` : "");
}

/** A limit, in hours up to two days: "24 h" rather than "1 d". */
function span(seconds: number): string {
  return seconds >= 3600 && seconds <= 172_800 && seconds % 3600 === 0 ? `${seconds / 3600} h` : duration(seconds);
}
