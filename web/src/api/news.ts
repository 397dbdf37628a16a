/** Events about everything the user owns: they invalidate queries and show notifications. */

import { useEffect } from "react";
import { checkBuild } from "./build";
import { database } from "./database";
import type { DbUpdate, EventsFrame, Notification, SessionUpdate } from "./frames.generated";
import { queryClient, session } from "./queries";
import { shared } from "./shared";
import { type LinkState, LiveSocket } from "./socket";
import { staleQueries } from "./stale";

const BATCH_MS = 150; // events come in bursts; they are answered with one refetch

const link = shared<LinkState>("connecting");
export const useLinkState = link.use;
const stale = new Set<string>();
let wasLost = false;

/** Note the state of the connection. When it is back, load what failed meanwhile, and see if the server was upgraded. */
function setState(state: LinkState): void {
  link.set(state);
  if (state === "lost") wasLost = true;
  if (state !== "open" || !wasLost) return;
  wasLost = false;
  void queryClient.refetchQueries({ predicate: (query) => query.state.status === "error" });
  void checkBuild();
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
  }, BATCH_MS);
}

/** Show that a database is being written to. */
function showWriting({ agent_id, in_flight = 0 }: DbUpdate): void {
  queryClient.setQueryData(database(agent_id).queryKey, (before) => before && { ...before, in_flight });
}

/** Load an open session again if it has another title: the frames of its own socket do not say so. */
function refreshTitle({ session_id, title }: SessionUpdate): void {
  const { queryKey } = session(session_id);
  if (queryClient.getQueryData(queryKey)?.title !== title) void queryClient.invalidateQueries({ queryKey });
}

/** Listen to the events while the page is open. */
export function useNews(onNotification: (notification: Notification) => void): void {
  useEffect(() => {
    const socket = new LiveSocket<EventsFrame & { seq?: number | null }>("/ws/events", {
      onState: setState,
      onFrame: (frame) => {
        makeStale(staleQueries(frame));
        if (frame.type === "db_update") showWriting(frame);
        if (frame.type === "session_update") refreshTitle(frame);
        if (frame.type === "notification") onNotification(frame);
      },
    });
    return () => socket.close();
  }, [onNotification]);
}
