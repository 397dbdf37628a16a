/** Rows and columns as the table shows them. */

import type { Cell, Show } from "../../../../../api/database";
import type { ColumnShape } from "../../../../../api/rest.generated";

/** One row, by the names of its columns. */
export class Row {
  constructor(
    private readonly cells: Cell[],
    private readonly places: ReadonlyMap<string, number>,
  ) {}

  get(name: string): Cell {
    return this.cells[this.places.get(name) ?? -1] ?? null;
  }

  get id(): number {
    return this.cells[0] as number; // the server puts it first
  }

  get isDeleted(): boolean {
    return this.get("_deleted_at") !== null;
  }
}

const STAMPS: Record<string, string> = { _created_at: "created", _updated_at: "changed", _deleted_at: "deleted" };

/** The name of a column for people. */
export function title(column: ColumnShape): string {
  return (column.system && STAMPS[column.name]) || column.name;
}

/** Return the columns that a table shows: its own, one for both times of a change, and the deletion if there is any. */
export function shownColumns(columns: ColumnShape[], show: Show): ColumnShape[] {
  const stamps = show === "active" ? ["_updated_at"] : ["_updated_at", "_deleted_at"];
  return [...columns.filter((each) => !each.system), ...columns.filter((each) => stamps.includes(each.name))];
}

/** Return the column that names a row to people: its first text, or else its first column. */
export function nameColumn(columns: ColumnShape[]): ColumnShape | undefined {
  const own = columns.filter((each) => !each.system);
  return own.find((each) => each.declared === "text") ?? own.find((each) => !each.primary_key) ?? own[0];
}
