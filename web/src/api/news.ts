/** News of everything the user owns: it makes what the page has read fresh again, and tells of notifications. */

import { useEffect, useSyncExternalStore } from "react";
import type { EventsFrame, Notification } from "./frames.generated";
import { queryClient } from "./queries";
import { LiveSocket, type LinkState } from "./socket";

const STALE: Partial<Record<EventsFrame["type"], string[]>> = {
  recall_update: ["sessions", "wakes", "agenda"],
  schedule_update: ["wakes", "agenda"],
  session_update: ["sessions"],
  run_update: ["sessions", "runs", "agenda", "usage"],
  agent_update: ["agents", "pause", "wakes", "agenda"],
  db_update: ["database"],
  notification: ["notifications", "channels"],
};
const EVERYTHING = ["sessions", "wakes", "agenda", "runs", "agents", "pause", "notifications", "database", "usage"];
const TOGETHER = 150; // milliseconds: news comes in bursts, and one reading answers all of it

let state: LinkState = "connecting";
const listeners = new Set<() => void>();
const stale = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;

function setState(next: LinkState): void {
  state = next;
  for (const listener of listeners) listener();
}

function makeStale(names: string[]): void {
  for (const name of names) stale.add(name);
  timer ??= setTimeout(() => {
    timer = undefined;
    const now = [...stale];
    stale.clear();
    for (const name of now) void queryClient.invalidateQueries({ queryKey: [name] });
  }, TOGETHER);
}

/** Listen as long as the page is open. */
export function useNews(onNotification: (notification: Notification) => void): void {
  useEffect(() => {
    const socket = new LiveSocket<EventsFrame & { seq?: number | null }>("/ws/events", {
      onState: setState,
      onFrame: (frame) => {
        if (frame.type === "session_sync") makeStale(EVERYTHING);
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
