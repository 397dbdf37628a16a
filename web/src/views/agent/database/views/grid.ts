/** The layout of Home: pinned views in rows that are filled, each as wide as its kind needs. */

import type { Render } from "../../../../api/database";

const UNIT = 84; // pixels; a chart needs four
const UNITS: Record<Render, number> = { number: 2, pie: 3, bar: 4, line: 4, table: 4 };

export interface Sized<T> {
  item: T;
  units: number;
}

/** Distribute views over rows. Several numbers have rows of their own, which are low; a lone one is beside a chart. */
export function toRows<T extends { render: Render }>(views: T[], width: number): Sized<T>[][] {
  const space = Math.max(Math.floor(width / UNIT), 1);
  const sized = views.map((item) => ({ item, units: Math.min(UNITS[item.render], space) }));
  const numbers = sized.filter(({ item }) => item.render === "number");
  const others = sized.filter(({ item }) => item.render !== "number");
  return numbers.length > 1
    ? [...packEvenly(numbers, space), ...packEvenly(others, space)]
    : packEvenly([...numbers, ...others], space);
}

/** Fill as few rows as possible, none much emptier than the others: in the smallest space that needs no more rows. */
function packEvenly<T>(sized: Sized<T>[], space: number): Sized<T>[][] {
  const rows = pack(sized, space);
  const widest = Math.max(...sized.map((each) => each.units));
  for (let less = widest; less < space; less += 1) {
    const tighter = pack(sized, less);
    if (tighter.length === rows.length) return tighter;
  }
  return rows;
}

function unitsOf<T>(row: Sized<T>[]): number {
  return row.reduce((sum, each) => sum + each.units, 0);
}

/** Fill one row after the other. */
function pack<T>(sized: Sized<T>[], space: number): Sized<T>[][] {
  const rows: Sized<T>[][] = [];
  for (const each of sized) {
    const last = rows.at(-1);
    if (last && unitsOf(last) + each.units <= space) last.push(each);
    else rows.push([each]);
  }
  return rows;
}

/** Return the title of a view for people: its description if that is short, else its name in words. */
export function titleOf({ name, description }: { name: string; description: string }): string {
  return isTitle(description) ? description.trim().replace(/\.$/, "") : inWords(name);
}

/** Return the line below the title: the name if the description is the title, else the description. */
export function subtitleOf({ name, description }: { name: string; description: string }): string {
  return isTitle(description) ? inWords(name) : description;
}

const MAX_TITLE = 60;

function isTitle(description: string): boolean {
  const text = description.trim();
  return text !== "" && text.length <= MAX_TITLE && !text.includes("\n");
}

function inWords(name: string): string {
  const words = name.replaceAll("_", " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
