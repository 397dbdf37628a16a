import { expect, it } from "vitest";
import type { EventsFrame } from "./frames.generated";
import { staleQueries } from "./stale";

const ACTIONS = ["scheduled", "cancelled", "fired", "rescheduled", "deferred", "skipped", "failed"];

it.each(ACTIONS.flatMap((action) => ["recall_update", "schedule_update"].map((type) => [type, action])))(
  "%s with the action %s refreshes sidebar, banner and agenda",
  (type, action) => {
    const stale = staleQueries({ type, action } as unknown as EventsFrame);
    expect(stale).toEqual(expect.arrayContaining(["sessions", "wakes", "agenda"]));
    expect(stale.includes("runs")).toBe(["fired", "skipped", "failed"].includes(action ?? ""));
  },
);

it("refreshes a database when its writes are over", () => {
  expect(staleQueries({ type: "db_update", agent_id: "a", in_flight: 1 })).toEqual([]);
  expect(staleQueries({ type: "db_update", agent_id: "a", in_flight: 0 })).toEqual(["database"]);
});

it("refreshes everything after a gap, and nothing for a frame of a newer server", () => {
  expect(staleQueries({ type: "session_sync" })).toContain("agents");
  expect(staleQueries({ type: "moon_update" } as unknown as EventsFrame)).toEqual([]);
});
