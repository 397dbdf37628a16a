/** The state of the table in the address: which rows, their filter, order and page. */

import { useSearchParams } from "wouter";
import type { Show } from "../../../../api/database";
import type { TableShape } from "../../../../api/rest.generated";
import { type Condition, readConditions, writeConditions } from "./filter/conditions";

export const SHOWS: [Show, string][] = [
  ["active", "Active"],
  ["deleted", "Deleted"],
  ["all", "All"],
];

export interface Order {
  sort: string | null; // a column
  isDown: boolean;
}

/** Return what the address says about a table, and functions that change it and go back to the first page. */
export function useAddress(table: TableShape) {
  const [params, setParams] = useSearchParams();
  const change = (changes: Record<string, string | null>) =>
    setParams(
      (before) => {
        const next = new URLSearchParams(before);
        next.set("table", table.name);
        for (const [name, value] of Object.entries({ page: null, ...changes }))
          value === null ? next.delete(name) : next.set(name, value);
        return next;
      },
      { replace: true },
    );
  const show = SHOWS.find(([each]) => each === params.get("show"))?.[0] ?? "active";
  const sort = table.columns.find((column) => column.name === params.get("sort"))?.name ?? null;
  return {
    show,
    order: { sort, isDown: sort !== null && params.get("desc") === "1" } satisfies Order,
    page: Math.max(1, Math.floor(Number(params.get("page"))) || 1),
    conditions: readConditions(params.get("where"), table.columns),
    setShow: (each: Show) => change({ show: each === "active" ? null : each }),
    setOrder: ({ sort, isDown }: Order) => change({ sort, desc: sort !== null && isDown ? "1" : null }),
    setPage: (page: number) => change({ page: String(page) }),
    setConditions: (conditions: Condition[]) => change({ where: writeConditions(conditions) }),
  };
}

export type Address = ReturnType<typeof useAddress>;

/** Return the order after a click on a column: up, then down, then none. */
export function nextOrder({ sort, isDown }: Order, name: string): Order {
  if (sort !== name) return { sort: name, isDown: false };
  return isDown ? { sort: null, isDown: false } : { sort: name, isDown: true };
}
