import { expect, it } from "vitest";
import { localTimes } from "./TextWithTimes";

const NOON = new Date(2026, 10, 17, 12).getTime(); // in the zone of this machine
const at = (hours: number) => new Date(NOON + hours * 3_600_000).toISOString();

it("writes the times of a text in the viewer's zone", () => {
  const times = { "2026-11-17 22:00:00 (Asia/Tokyo)": at(1), "2026-11-18 21:00:00 (Asia/Tokyo)": at(24) };
  const text = "From 2026-11-17 22:00:00 (Asia/Tokyo) to 2026-11-18 21:00:00 (Asia/Tokyo).";
  expect(localTimes(text, times, NOON)).toMatch(/^From today \S+( PM)? to tomorrow \S+( PM)?\.$/);
});

it("leaves a text without times as it is", () => {
  expect(localTimes("No times.", {}, NOON)).toBe("No times.");
});
