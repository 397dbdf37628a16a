/** Reads the results of tools, which are text for a model, into what is drawn of them. */

import type { Cell } from "../../../../api/database";
import { RESULT_KINDS } from "../../../../api/server.generated";
import type { Tool } from "../items";

export type ResultKind = (typeof RESULT_KINDS)[keyof typeof RESULT_KINDS];

export function kindOf(tool: string): ResultKind | null {
  return Object.hasOwn(RESULT_KINDS, tool) ? RESULT_KINDS[tool as keyof typeof RESULT_KINDS] : null;
}

export interface Rows {
  columns: string[];
  rows: Cell[][];
  isTruncated: boolean;
}

/** Return the rows of a query, or null if the result is not one. */
export function rowsOf(item: Tool): Rows | null {
  const { columns, rows, truncated } = resultOf(item);
  if (!Array.isArray(columns) || !Array.isArray(rows) || !rows.every(Array.isArray)) return null;
  return { columns: columns.map(String), rows: rows as Cell[][], isTruncated: truncated === true };
}

export interface ChangedRows {
  table: string;
  count: number;
  lastChange: number | null; // number of the last changelog entry; null: written by an earlier version of the server
}

/** Return how many rows a write changed, and where the changelog has them. */
export function changesOf(item: Tool): ChangedRows | null {
  const { table, row_ids: ids, changed } = resultOf(item);
  const count = Array.isArray(ids) ? ids.length : changed;
  if (typeof count !== "number") return null;
  const last = item.metadata.last_change;
  return {
    table: typeof table === "string" ? table : "",
    count,
    lastChange: typeof last === "number" ? last : null,
  };
}

/** Return the error of a failed call in words: that of a database is inside JSON. */
export function errorOf(item: Tool): string {
  const { message } = item.metadata;
  return typeof message === "string" ? message : (item.result ?? "");
}

function resultOf(item: Tool): Record<string, unknown> {
  const body = objectIn(item.result ?? "");
  const result = body?.result;
  return body?.ok === true && typeof result === "object" && result !== null ? (result as Record<string, unknown>) : {};
}

function objectIn(text: string): Record<string, unknown> | null {
  if (!text.startsWith("{")) return null;
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return null; // cut off to save space
  }
}

export function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

export function countWords(count: number, what: string): string {
  return `${count.toLocaleString()} ${what}${count === 1 ? "" : "s"}`;
}

/** Return the argument that best summarises a call, shortened. */
export function mainArgument(args: Record<string, unknown>): string {
  const values = TELLING.map((name) => args[name]).filter((value) => typeof value === "string");
  const first = values[0] ?? Object.values(args).find((value) => typeof value === "string");
  return typeof first === "string" ? clip(first.replace(/\s+/g, " "), 80) : "";
}

const TELLING = [
  "path",
  "url",
  "query",
  "pattern",
  "command",
  "sql",
  "table",
  "name",
  "when",
  "title",
  "message",
  "op",
  "action",
];

export function clip(text: string, max: number): string {
  return text.length > max ? `${text.slice(0, max)}…` : text;
}

/** Return JSON indented, and any other text as it is. */
export function pretty(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
