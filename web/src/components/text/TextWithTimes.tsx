/** Texts of the server that contain times: they are shown in the viewer's zone instead of the person's. */

import { Fragment } from "react";
import { absolute, Time } from "./times";

/** The times in a text, as they are written there, and the instants. */
export type Times = Readonly<Record<string, string>>;

/** Split a text at the times in it. */
function split(text: string, times: Times): { before: string; at: string | null }[] {
  const places = Object.entries(times)
    .map(([written, at]) => ({ start: text.indexOf(written), end: text.indexOf(written) + written.length, at }))
    .filter(({ start }) => start >= 0)
    .sort((one, other) => one.start - other.start);
  const parts = places.map(({ start, at }, index) => ({ before: text.slice(places[index - 1]?.end ?? 0, start), at }));
  return [...parts, { before: text.slice(places.at(-1)?.end ?? 0), at: null }];
}

export function TextWithTimes({ text, times, zone }: { text: string; times: Times; zone?: string | undefined }) {
  return split(text, times).map(({ before, at }) => (
    <Fragment key={`${before}${at}`}>
      {before}
      {at && <Time at={at} zone={zone} />}
    </Fragment>
  ));
}

/** The same as plain text, for a browser notification. */
export function localTimes(text: string, times: Times, now: number): string {
  return split(text, times)
    .map(({ before, at }) => before + (at ? absolute(new Date(at), now) : ""))
    .join("");
}
