/** A sentence of a wake's history, with its instants in the viewer's time zone. */

import { clockTime, inZone, useNow } from "./times";

const INSTANT = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)/;

export function StoryText({ text, zone }: { text: string; zone: string | undefined }) {
  // Every second part is what the group of the pattern has matched.
  return text.split(INSTANT).map((part, index) => (index % 2 ? <ExactTime key={index} at={part} zone={zone} /> : part));
}

/** An instant to the second, with its day if that is not today. */
export function ExactTime({ at, zone }: { at: string; zone: string | undefined }) {
  const date = new Date(at);
  return (
    <time dateTime={at} title={inZone(date, zone)}>
      {exactly(date, useNow(60))}
    </time>
  );
}

export function exactly(at: Date, now: number): string {
  const time = clockTime(at, "medium");
  if (at.toDateString() === new Date(now).toDateString()) return time;
  return `${at.toLocaleDateString(undefined, { weekday: "short", day: "numeric", month: "short" })} ${time}`;
}
