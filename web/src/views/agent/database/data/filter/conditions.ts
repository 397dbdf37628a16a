/** Conditions of the filter: in the address, as the server expects them, and in words. */

import type { ColumnShape } from "../../../../../api/rest.generated";
import { title } from "../row/row";
import { type Kind, kindOf, typed } from "../values";

export type Operator = "contains" | "is" | "not" | "less" | "more" | "null" | "something";

export interface Condition {
  column: string;
  operator: Operator;
  value: string;
}

const WORDS: Record<Operator, string> = {
  contains: "contains",
  is: "is",
  not: "is not",
  less: "is less than",
  more: "is more than",
  null: "is null",
  something: "is not null",
};

const NULLS: Operator[] = ["null", "something"];
const TEXTS: Operator[] = ["contains", "is", "not", "less", "more", ...NULLS];
const TIMES: Operator[] = ["is", "less", "more", "contains", ...NULLS];
const OPERATORS: Record<Kind, Operator[]> = {
  text: TEXTS,
  json: ["contains", ...NULLS],
  integer: ["is", "not", "less", "more", ...NULLS],
  real: ["is", "not", "less", "more", ...NULLS],
  boolean: ["is", ...NULLS],
  date: TIMES,
  datetime: TIMES,
  blob: NULLS,
};

/** Return the comparisons that a column allows, in words. */
export function operatorsOf(column: ColumnShape): [Operator, string][] {
  const kind = column.system ? "datetime" : kindOf(column);
  return OPERATORS[kind].map((each) => [each, wordOf(each, kind)]);
}

function wordOf(operator: Operator, kind: Kind): string {
  const isTime = kind === "date" || kind === "datetime";
  if (isTime && operator === "less") return "is before";
  return isTime && operator === "more" ? "is after" : WORDS[operator];
}

export function needsValue(operator: Operator): boolean {
  return !NULLS.includes(operator);
}

/** Return the first condition of an empty filter. */
export function firstCondition(columns: ColumnShape[]): Condition | null {
  const column = columns.find((each) => !each.primary_key) ?? columns[0];
  return column ? newCondition(column) : null;
}

export function newCondition(column: ColumnShape): Condition {
  const operator = operatorsOf(column)[0]?.[0] ?? "null";
  return { column: column.name, operator, value: kindOf(column) === "boolean" ? "1" : "" };
}

/** Return the conditions of an address. Those about columns that there are not, or that make no sense, are left out. */
export function readConditions(text: string | null, columns: ColumnShape[]): Condition[] {
  let read: unknown;
  try {
    read = JSON.parse(text ?? "[]");
  } catch {
    return [];
  }
  if (!Array.isArray(read)) return [];
  return read.flatMap((each: unknown) => {
    const [name, operator, value = ""] = Array.isArray(each) ? each : [];
    const column = columns.find((one) => one.name === name);
    const isKnown = column && operatorsOf(column).some(([known]) => known === operator);
    return isKnown ? [{ column: column.name, operator, value: String(value) }] : [];
  });
}

/** Return the conditions as the address keeps them, or null without any. */
export function writeConditions(conditions: Condition[]): string | null {
  if (conditions.length === 0) return null;
  return JSON.stringify(
    conditions.map(({ column, operator, value }) =>
      needsValue(operator) ? [column, operator, value] : [column, operator],
    ),
  );
}

/** Return the conditions as the server expects them, or null without any. */
export function whereOf(conditions: Condition[], columns: ColumnShape[]): string | null {
  const written = conditions.flatMap(({ column: name, operator, value: text }) => {
    const column = columns.find((each) => each.name === name);
    if (!column) return [];
    const value = typed(column, text);
    const test = {
      contains: { like: `%${text}%` },
      is: { eq: value },
      not: { ne: value },
      less: { lt: value },
      more: { gt: value },
      null: { is_null: true },
      something: { is_null: false },
    }[operator];
    return [{ [name]: test }];
  });
  return written.length ? JSON.stringify(written) : null;
}

/** A condition in words: "cost is less than 10". */
export function conditionText({ column: name, operator, value }: Condition, columns: ColumnShape[]): string {
  const column = columns.find((each) => each.name === name);
  if (!column) return name;
  const kind = column.system ? "datetime" : kindOf(column);
  const shown = kind === "boolean" ? (value === "1" ? "yes" : "no") : value;
  return [title(column), wordOf(operator, kind), needsValue(operator) ? shown || "“”" : ""].join(" ").trim();
}
