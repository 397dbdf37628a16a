import { expect, it } from "vitest";
import { delayText, scheduledBy } from "./moves";

it.each([
  [[0, 1, 2, 3, 4, 5], "not on Sundays"],
  [[0, 1, 2, 3, 4], "not on Saturdays or Sundays"],
  [[0, 3], "only on Mondays and Thursdays"],
  [undefined, "not allowed on this day"], // an agent that was deleted
])("a delay by a day that is not allowed, with the days %j, is: %s", (days, text) => {
  expect(delayText("day_not_allowed", days)).toBe(text);
});

it("uses the labels of other reasons", () => {
  expect(delayText("quiet_hours", [0])).toBe("quiet hours");
});

it("names who moved a run beside who scheduled it", () => {
  const booking = { requested: "3h", requested_at: null, zone: null, moved_by: [], final: "2026-11-17T12:00:00Z" };
  const text = (scheduled_by: string, changed_by: "user" | null) =>
    scheduledBy({ scheduled_by, booking: { ...booking, changed_by }, through: null, has_read: null });
  expect(text("agent", "user")).toBe("by the agent, moved by you");
  expect(text("agent", null)).toBe("by the agent");
  expect(text("user", "user")).toBe("by you");
});

it("names the program that scheduled a run, and its token", () => {
  const through = "through MCP (token “laptop”)";
  const wake = { scheduled_by: "user", booking: null, through, has_read: null };
  expect(scheduledBy(wake)).toBe("by you through MCP (token “laptop”)");
  expect(scheduledBy({ ...wake, scheduled_by: "agent", through: null, has_read: "https://example.org" })).toBe(
    "by the agent, booked by a run that had read https://example.org",
  );
});
