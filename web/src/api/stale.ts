/** Which queries an event makes stale. */

import type { EventsFrame } from "./frames.generated";

const ALL = [
  "sessions",
  "wakes",
  "agenda",
  "runs",
  "agents",
  "pause",
  "notifications",
  "database",
  "usage",
  "approvals",
];

// The same frames may arrive on both sockets. Each action of a wake (scheduled, cancelled, fired, rescheduled, deferred,
// skipped, failed) moves or ends it, so all of them make the same queries stale.
const STALE: Record<EventsFrame["type"], string[]> = {
  recall_update: ["sessions", "wakes", "agenda"],
  schedule_update: ["sessions", "wakes", "agenda", "notifications"], // a next run resolves a notice
  session_update: ["sessions"],
  run_update: ["sessions", "runs", "agenda", "usage", "approvals"], // a stopped run waits for no answer
  approval_update: ["approvals", "sessions"],
  agent_update: ["agents", "pause", "sessions", "wakes", "agenda"], // a pause too is one
  notification: ["notifications", "channels", "push", "instructions"],
  session_sync: ALL,
  db_update: [],
  heartbeat: [],
  error: [],
};

export function staleQueries(frame: EventsFrame): string[] {
  if (frame.type === "db_update") return frame.in_flight ? [] : ["database"]; // refetch when the writes are over
  const names = STALE[frame.type] ?? [];
  // A run that was skipped or could not be started is listed too.
  return isWakeOver(frame) ? [...names, "runs"] : names;
}

function isWakeOver(frame: EventsFrame): boolean {
  return "action" in frame && ["fired", "skipped", "failed"].includes(frame.action);
}
