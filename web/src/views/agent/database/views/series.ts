/** Chart data of a result: names from the first column, values from the numeric columns after it. */

import type { Cell } from "../../../../api/database";
import { plain } from "../data/Value";

export interface Series {
  name: string;
  values: (number | null)[];
}

export interface Drawable {
  names: string[];
  series: Series[];
}

/** Return the chart data, or null without a numeric column. */
export function drawable(columns: string[], rows: Cell[][]): Drawable | null {
  if (rows.length === 0) return null;
  const isNumeric = (place: number) =>
    rows.some((row) => typeof row[place] === "number") &&
    rows.every((row) => row[place] === null || typeof row[place] === "number");
  const numeric = columns.map((_, place) => place).filter(isNumeric);
  const named = columns.length > 1 ? 0 : null;
  const drawn = numeric.filter((place) => place !== named);
  if (drawn.length === 0) return null;
  return {
    names: rows.map((row, number) => (named === null ? String(number + 1) : plain(row[named] ?? null))),
    series: drawn.map((place) => ({
      name: columns[place] ?? "",
      values: rows.map((row) => row[place] as number | null),
    })),
  };
}

/** Return about `about` round numbers that cover a range. */
export function ticks(low: number, high: number, about = 4): number[] {
  if (low === high) return ticks(Math.min(0, low), Math.max(low === 0 ? 1 : 0, high), about);
  const rough = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((each) => each * power >= rough) ?? 10) * power;
  const first = Math.floor(low / step + 1e-9);
  const last = Math.ceil(high / step - 1e-9);
  return Array.from({ length: last - first + 1 }, (_, number) => Number(((first + number) * step).toPrecision(12)));
}

/** Format a number for an axis. */
export function short(value: number): string {
  return Math.abs(value) >= 10_000
    ? value.toLocaleString(undefined, { notation: "compact", maximumFractionDigits: 1 })
    : value.toLocaleString(undefined, { maximumFractionDigits: 3 });
}

const DAY_OR_TIME = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d|$)/;

/** Return x positions if the names are numbers or dates, so that gaps are visible; else null. */
export function positions(names: string[]): number[] | null {
  const found = names.map((name) =>
    DAY_OR_TIME.test(name) ? Date.parse(name) : name.trim() === "" ? NaN : Number(name),
  );
  return found.every(Number.isFinite) && new Set(found).size > 1 ? found : null;
}

const LETTER = 7.4; // pixels, on average
const GAP = 8; // pixels between two labels

const shorten = (name: string) => (name.length > 12 ? `${name.slice(0, 11)}…` : name);

/** Return the labels that fit under a chart without overlapping, each with its centre.
 *
 * The last one is always there, then the first if there is room for it, then those in between.
 */
export function fittingLabels(
  names: string[],
  place: (number: number) => number,
  width: number,
): { name: string; at: number }[] {
  const [last, ...rest] = names
    .map((whole, number) => {
      const name = shorten(whole);
      const half = (LETTER * name.length) / 2;
      return { name, half, at: Math.max(Math.min(place(number), width - half), half) };
    })
    .toReversed();
  if (!last) return [];
  const fitting = [last];
  for (const label of [...rest.slice(-1), ...rest.slice(0, -1)])
    if (fitting.every((other) => Math.abs(label.at - other.at) >= label.half + other.half + GAP)) fitting.push(label);
  return fitting.sort((one, other) => one.at - other.at).map(({ name, at }) => ({ name, at }));
}
