/** Times in the viewer's time zone, with the agent's on hover. */

import { useSyncExternalStore } from "react";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const SCALES = {
  minutes: { unit: MINUTE, name: "min", below: 1, belowName: "s" },
  hours: { unit: HOUR, name: "h", below: MINUTE, belowName: "min" },
  days: { unit: DAY, name: "d", below: HOUR, belowName: "h" },
};

/** Format a duration, rounded to two units, or to one from ten of it on. */
export function duration(seconds: number): string {
  const whole = Math.round(Math.abs(seconds));
  if (whole < MINUTE) return `${whole} s`;
  const { unit, name, below, belowName } = SCALES[whole < HOUR ? "minutes" : whole < DAY ? "hours" : "days"];
  const precision = whole < 10 * unit ? below : unit;
  const rounded = Math.round(whole / precision) * precision;
  if (rounded !== whole) return duration(rounded); // which may need a larger unit: 59 min 59 s is 1 h
  const rest = (whole % unit) / below;
  const first = `${Math.floor(whole / unit)} ${name}`;
  return rest ? `${first} ${rest} ${belowName}` : first;
}

/** Format how long something took, with a fraction below ten seconds. */
export function took(seconds: number): string {
  if (seconds < 1) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  return seconds < 10 ? `${seconds.toFixed(1)} s` : duration(seconds);
}

/** Format an instant relative to now: "in 2 h", "5 min ago". */
export function relative(at: Date, now: number): string {
  const seconds = (at.getTime() - now) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  return seconds > 0 ? `in ${duration(seconds)}` : `${duration(seconds)} ago`;
}

function sameDay(one: Date, other: Date): boolean {
  return one.toDateString() === other.toDateString();
}

/** Noon of another day: a day with a clock change has 23 or 25 hours. */
function dayAfter(date: Date, days: number): Date {
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() + days, 12);
}

/** Format the time of day as the viewer's country writes it: "09:05", "9:05 AM". */
export function clockTime(at: Date, timeStyle: "short" | "medium" = "short"): string {
  return at.toLocaleTimeString(undefined, { timeStyle });
}

/** Format an instant as briefly as is clear: "today 14:05", "Tue 09:00". */
export function absolute(at: Date, now: number): string {
  const today = new Date(now);
  const time = clockTime(at);
  if (sameDay(at, today)) return `today ${time}`;
  if (sameDay(at, dayAfter(today, 1))) return `tomorrow ${time}`;
  if (sameDay(at, dayAfter(today, -1))) return `yesterday ${time}`;
  const isNear = Math.abs(at.getTime() - now) < 6 * DAY * 1000;
  const day = isNear
    ? at.toLocaleDateString(undefined, { weekday: "short" })
    : at.toLocaleDateString(undefined, {
        day: "numeric",
        month: "short",
        ...(at.getFullYear() === today.getFullYear() ? {} : { year: "numeric" }),
      });
  return `${day} ${time}`;
}

export function inZone(at: Date, zone: string | undefined): string {
  const options: Intl.DateTimeFormatOptions = { dateStyle: "full", timeStyle: "medium" };
  try {
    return zone
      ? `${at.toLocaleString(undefined, { ...options, timeZone: zone })} in ${zone}`
      : at.toLocaleString(undefined, options);
  } catch {
    return at.toLocaleString(undefined, options); // a zone this browser does not know
  }
}

/** A clock that ticks while anyone subscribes to it. */
class Ticker {
  private readonly listeners = new Set<() => void>();
  private timer: ReturnType<typeof setInterval> | undefined;
  private now = Date.now();

  constructor(private readonly milliseconds: number) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    this.timer ??= setInterval(() => {
      this.now = Date.now();
      for (const notify of this.listeners) notify();
    }, this.milliseconds);
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size > 0) return;
      clearInterval(this.timer);
      this.timer = undefined;
    };
  };

  readonly read = (): number => {
    // Nobody subscribed for a while, so the last value is out of date.
    if (this.timer === undefined && Date.now() - this.now > this.milliseconds) this.now = Date.now();
    return this.now;
  };
}

const tickers = new Map<number, Ticker>();

/** The current time, updated every `seconds`; all components share one timer per interval. */
export function useNow(seconds = 15): number {
  const ticker = tickers.get(seconds) ?? new Ticker(seconds * 1000);
  tickers.set(seconds, ticker);
  return useSyncExternalStore(ticker.subscribe, ticker.read);
}

interface TimeProps {
  at: string;
  zone?: string | undefined;
  form?: Form;
}

type Form = "relative" | "absolute" | "both" | "ahead"; // ahead: both, and absolute alone once it is past

/** Return an instant in words. */
export function timeText(date: Date, now: number, form: Form): string {
  if (form === "relative") return relative(date, now);
  const isBoth = form === "both" || (form === "ahead" && date.getTime() > now);
  return isBoth ? `${relative(date, now)} · ${absolute(date, now)}` : absolute(date, now);
}

/** An instant; the whole of it, in the agent's zone, on hover. */
export function Time({ at, zone, form = "absolute" }: TimeProps) {
  const date = new Date(at);
  const hasSeconds = Math.abs(date.getTime() - Date.now()) < 10.5 * MINUTE * 1000; // soon, if not yet
  const now = useNow(hasSeconds && form !== "absolute" ? 1 : 15);
  return (
    <time dateTime={at} title={inZone(date, zone)}>
      {timeText(date, now, form)}
    </time>
  );
}
