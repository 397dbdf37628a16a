/** Queries of agents' databases. Their keys begin with "database", so that one event invalidates them all. */

import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { call } from "./client";
import { useAct } from "./queries";
import type { Blob as Binary, Routes, ViewShape } from "./rest.generated";

export type Cell = string | number | Binary | null;
export type Show = "active" | "deleted" | "all";
export type Render = ViewShape["render"];

const of = (agentId: string) => ({ agent_id: agentId });

export const database = (agentId: string) =>
  queryOptions({
    queryKey: ["database", agentId, "state"],
    queryFn: () => call("GET /agents/{agent_id}/db", { path: of(agentId) }),
  });
export const schema = (agentId: string) =>
  queryOptions({
    queryKey: ["database", agentId, "schema"],
    queryFn: () => call("GET /agents/{agent_id}/db/schema", { path: of(agentId), query: { system: true } }),
  });

export type RowsQuery = Routes["GET /agents/{agent_id}/db/tables/{table}/rows"]["query"];

export const rows = (agentId: string, table: string, query: RowsQuery) =>
  queryOptions({
    queryKey: ["database", agentId, "rows", table, query],
    queryFn: () => call("GET /agents/{agent_id}/db/tables/{table}/rows", { path: { ...of(agentId), table }, query }),
    placeholderData: keepPreviousData,
  });
export const viewRun = (agentId: string, view: string, params: Record<string, unknown>) =>
  queryOptions({
    queryKey: ["database", agentId, "view", view, params],
    queryFn: () =>
      call("POST /agents/{agent_id}/db/views/{view}/run", { path: { ...of(agentId), view }, body: { params } }),
    placeholderData: keepPreviousData,
  });

const CHANGES = 100;

export type WhichChanges = { run_id?: string; table?: string; row_id?: number; before?: number; limit?: number };

/** Changelog entries of a run, of one row, or of one call, which are a number of entries before another. */
export const changes = (agentId: string, which: WhichChanges) => ({
  queryKey: ["database", agentId, "changes", which],
  queryFn: ({ pageParam }: { pageParam: number | null }) =>
    call("GET /agents/{agent_id}/db/changelog", {
      path: of(agentId),
      query: { limit: CHANGES, ...which, before: pageParam },
    }),
  initialPageParam: which.before ?? null,
  getNextPageParam: (last: { next?: number | null }) => last.next ?? undefined,
});

export function exportOfTable(agentId: string, table: string, show: Show): string {
  return `/agents/${encodeURIComponent(agentId)}/db/tables/${encodeURIComponent(table)}/export?format=csv&show=${show}`;
}

export function exportOfView(agentId: string, view: string, params: Record<string, unknown>): string {
  const query = new URLSearchParams({ format: "csv", params: JSON.stringify(params) });
  return `/agents/${encodeURIComponent(agentId)}/db/views/${encodeURIComponent(view)}/export?${query}`;
}

/** A mutation of a database that refetches its queries. */
export function useWrite<T, R>(write: (given: T) => Promise<R>, onDone?: (result: R) => void) {
  return useAct(write, [["database"]], onDone);
}
