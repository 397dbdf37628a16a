/** News of everything the user owns: it makes what the page has read fresh again, and tells of notifications. */

import { useEffect, useSyncExternalStore } from "react";
import { database } from "./database";
import type { DbUpdate, EventsFrame, Notification } from "./frames.generated";
import { queryClient } from "./queries";
import { type LinkState, LiveSocket } from "./socket";

const STALE: Partial<Record<EventsFrame["type"], string[]>> = {
  recall_update: ["sessions", "wakes", "agenda"],
  schedule_update: ["wakes", "agenda"],
  session_update: ["sessions"],
  run_update: ["sessions", "runs", "agenda", "usage"],
  agent_update: ["agents", "pause", "wakes", "agenda"],
  notification: ["notifications", "channels", "instructions"],
};
const EVERYTHING = ["sessions", "wakes", "agenda", "runs", "agents", "pause", "notifications", "database", "usage"];
const TOGETHER = 150; // milliseconds: news comes in bursts, and one reading answers all of it

let state: LinkState = "connecting";
const listeners = new Set<() => void>();
const stale = new Set<string>();

function setState(next: LinkState): void {
  state = next;
  for (const listener of listeners) listener();
}

function makeStale(names: string[]): void {
  if (names.length === 0) return;
  const isPlanned = stale.size > 0;
  for (const name of names) stale.add(name);
  if (isPlanned) return;
  setTimeout(() => {
    const now = [...stale];
    stale.clear();
    for (const name of now) void queryClient.invalidateQueries({ queryKey: [name] });
  }, TOGETHER);
}

/** Show that a database is being written to; read it again when that is over. */
function noteWrite({ agent_id, in_flight = 0 }: DbUpdate): void {
  queryClient.setQueryData(database(agent_id).queryKey, (before) => before && { ...before, in_flight });
  if (in_flight === 0) makeStale(["database"]);
}

/** Listen as long as the page is open. */
export function useNews(onNotification: (notification: Notification) => void): void {
  useEffect(() => {
    const socket = new LiveSocket<EventsFrame & { seq?: number | null }>("/ws/events", {
      onState: setState,
      onFrame: (frame) => {
        if (frame.type === "session_sync") makeStale(EVERYTHING);
        else if (frame.type === "db_update") noteWrite(frame);
        else makeStale(STALE[frame.type] ?? []);
        if (frame.type === "notification") onNotification(frame);
      },
    });
    return () => socket.close();
  }, [onNotification]);
}

export function useLinkState(): LinkState {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => state,
  );
}
