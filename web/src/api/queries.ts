/** The page's queries: each has a key, so that events can invalidate it. */

import {
  infiniteQueryOptions,
  keepPreviousData,
  notifyManager,
  QueryClient,
  queryOptions,
  useMutation,
  useQueryClient,
} from "@tanstack/react-query";
import { ApiError, call } from "./client";
import { clearPageError, showPageError } from "./pageError";
import type { PauseShape } from "./rest.generated";

// Not with a timer: the saved answer must be rendered before the stream drops its copy, or it would flicker.
notifyManager.setScheduler(queueMicrotask);

export const queryClient = new QueryClient({
  defaultOptions: {
    // The server may run on this machine, which needs no network: `navigator.onLine` says nothing about it.
    mutations: { networkMode: "always" },
    queries: {
      networkMode: "always",
      staleTime: 30_000,
      retry: (count, error) => count < 2 && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500),
      refetchOnWindowFocus: true,
    },
  },
});

const MAX_LISTED = 200;

const AWAY_MS = 3_000; // between two tries while there is no socket that would notice that the server is back

export const me = queryOptions({
  queryKey: ["me"],
  queryFn: () => call("GET /me"),
  staleTime: 300_000,
  refetchInterval: ({ state: { error } }) => error instanceof ApiError && error.status !== 401 && AWAY_MS,
});
export const about = queryOptions({ queryKey: ["about"], queryFn: () => call("GET /about") });
export const readiness = queryOptions({ queryKey: ["ready"], queryFn: () => call("GET /readyz"), retry: false });
export const agents = queryOptions({ queryKey: ["agents"], queryFn: async () => (await call("GET /agents")).agents });
/** The latest sessions, or those that match, in pages. */
export const sessions = (filter: { q?: string; has_wake?: boolean; unattended?: boolean }) =>
  infiniteQueryOptions({
    queryKey: ["sessions", filter],
    queryFn: ({ pageParam }) => call("GET /sessions", { query: { ...filter, limit: 100, page: pageParam } }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next ?? undefined,
    placeholderData: keepPreviousData, // the list stays while someone types
  });
export const session = (id: string) =>
  queryOptions({
    queryKey: ["session", id],
    queryFn: () => call("GET /sessions/{session_id}", { path: { session_id: id } }),
    staleTime: Infinity, // its socket invalidates it
  });
export const wakes = queryOptions({
  queryKey: ["wakes"],
  queryFn: async () => {
    const { wakes } = await call("GET /wakes", { query: { live: true, limit: MAX_LISTED } });
    return wakes.filter((wake) => wake.status === "pending" || wake.held_by !== null); // else its run is about to start
  },
});
export const wake = (id: string) =>
  queryOptions({ queryKey: ["wakes", id], queryFn: () => call("GET /wakes/{wake_id}", { path: { wake_id: id } }) });
export const why = (id: string) =>
  queryOptions({
    queryKey: ["wakes", id, "why"],
    queryFn: async () => (await call("GET /wakes/{wake_id}/why", { path: { wake_id: id } })).decisions,
  });
export const runs = (filter: { agent_id?: string; session_id?: string }) =>
  queryOptions({
    queryKey: ["runs", filter],
    queryFn: async () => (await call("GET /runs", { query: { ...filter, limit: 100 } })).runs,
  });
export const run = (id: string) =>
  queryOptions({ queryKey: ["runs", id], queryFn: () => call("GET /runs/{run_id}", { path: { run_id: id } }) });
export const agentPause = (agentId: string) =>
  queryOptions({
    queryKey: ["pause", agentId],
    queryFn: () => call("GET /agents/{agent_id}/pause", { path: { agent_id: agentId } }),
    refetchInterval: ({ state }) => untilEnd(state.data?.pause, state.data?.everything),
  });
export const pauseOfAll = queryOptions({
  queryKey: ["pause", "all"],
  queryFn: async () => (await call("GET /pause")).pause,
  refetchInterval: ({ state }) => untilEnd(state.data),
});
export const notifications = queryOptions({
  queryKey: ["notifications"],
  queryFn: async () => (await call("GET /notifications", { query: { limit: MAX_LISTED } })).notifications,
});
export const approvals = (runId: string) =>
  queryOptions({
    queryKey: ["approvals", runId],
    queryFn: async () => (await call("GET /runs/{run_id}/approvals", { path: { run_id: runId } })).approvals,
  });
/** The calls that wait for approval now, of all sessions. */
export const waitingApprovals = queryOptions({
  queryKey: ["approvals", "waiting"],
  queryFn: async () => (await call("GET /approvals")).approvals,
});
export const allowances = (agentId: string) =>
  queryOptions({
    queryKey: ["agents", agentId, "allowances"],
    queryFn: async () => (await call("GET /agents/{agent_id}/allowances", { path: { agent_id: agentId } })).allowances,
  });
export const agenda = (from: Date, to: Date) =>
  queryOptions({
    queryKey: ["agenda", from.toISOString(), to.toISOString()],
    queryFn: () => call("GET /agenda", { query: { from: from.toISOString(), to: to.toISOString() } }),
  });
export const usage = (agentId: string) =>
  queryOptions({
    queryKey: ["usage", agentId],
    queryFn: () => call("GET /agents/{agent_id}/usage", { path: { agent_id: agentId } }),
  });
export const instructions = (agentId: string) =>
  queryOptions({
    queryKey: ["instructions", agentId],
    queryFn: async () => (await call("GET /agents/{agent_id}/instructions", { path: { agent_id: agentId } })).files,
  });
export const mcpServers = queryOptions({
  queryKey: ["mcp-servers"],
  queryFn: async () => (await call("GET /mcp-servers")).mcp_servers,
  staleTime: 5_000,
});
export const tools = queryOptions({
  queryKey: ["tools"],
  queryFn: async () => (await call("GET /tools")).tools,
  staleTime: Infinity,
});
export const channels = queryOptions({
  queryKey: ["channels"],
  queryFn: async () => (await call("GET /channels")).channels,
});
export const hooks = queryOptions({ queryKey: ["hooks"], queryFn: async () => (await call("GET /hooks")).hooks });
export const hookDeliveries = (id: string) =>
  queryOptions({
    queryKey: ["hooks", id, "deliveries"],
    queryFn: async () => (await call("GET /hooks/{hook_id}/deliveries", { path: { hook_id: id } })).deliveries,
  });
export const webhooks = queryOptions({
  queryKey: ["webhooks"],
  queryFn: async () => (await call("GET /webhooks")).webhooks,
});
export const webhookDeliveries = (id: string) =>
  queryOptions({
    queryKey: ["webhooks", id, "deliveries"],
    queryFn: async () => (await call("GET /webhooks/{webhook_id}/deliveries", { path: { webhook_id: id } })).deliveries,
  });
export const pushBrowsers = queryOptions({ queryKey: ["push"], queryFn: () => call("GET /push-subscriptions") });
export const models = queryOptions({ queryKey: ["models"], queryFn: () => call("GET /models") });
export const providers = queryOptions({
  queryKey: ["providers"],
  queryFn: async () => (await call("GET /models/providers")).providers,
  staleTime: Infinity,
});
/** The servers on a shared store; no event announces their heartbeats. */
export const nodes = queryOptions({
  queryKey: ["nodes"],
  queryFn: () => call("GET /nodes"),
  refetchInterval: 10_000,
});
export const backups = queryOptions({ queryKey: ["backups"], queryFn: () => call("GET /backups") });
export const storage = queryOptions({ queryKey: ["storage"], queryFn: () => call("GET /storage") });
export const tokens = queryOptions({ queryKey: ["tokens"], queryFn: async () => (await call("GET /tokens")).tokens });
export const users = queryOptions({ queryKey: ["users"], queryFn: async () => (await call("GET /users")).users });

/** The error of a query that its place must show: while the server is unavailable, earlier data stays. */
export function problemOf({ error, data }: { error: unknown; data: unknown }): unknown {
  const isAway = error instanceof ApiError && (error.status === 0 || error.status >= 500);
  return isAway && data !== undefined ? null : error;
}

/** Milliseconds until the first of these pauses is over, which no event announces. */
function untilEnd(...pauses: (PauseShape | null | undefined)[]): number | false {
  const ends = pauses.flatMap((pause) => (pause?.until ? [Date.parse(pause.until) - Date.now()] : []));
  return ends.length > 0 && Math.min(Math.max(Math.min(...ends), 0) + 500, 3_600_000);
}

/** A mutation that invalidates the queries it may have changed. */
export function useAct<T, R = unknown>(
  act: (given: T) => Promise<R>,
  changes: string[][],
  onDone?: (result: R) => void,
) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: act,
    onSuccess: onDone,
    onSettled: () => Promise.all(changes.map((queryKey) => client.invalidateQueries({ queryKey }))),
  });
}

/** The same for a click without a place for errors: they are shown above the page. */
export function useQuickAct<T, R = unknown>(act: (given: T) => Promise<R>, changes: string[][]) {
  return useAct((given: T) => {
    clearPageError();
    return act(given).catch((error: unknown) => {
      showPageError(error);
      throw error;
    });
  }, changes);
}
