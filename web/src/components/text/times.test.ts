import { describe, expect, it } from "vitest";
import { absolute, duration, relative, timeText, took } from "./times";

const NOON = new Date(2026, 10, 17, 12).getTime(); // in the zone of this machine
const MINUTE = 60_000;
const at = (minutes: number) => new Date(NOON + minutes * MINUTE);

describe("duration", () => {
  it.each([
    [0, "0 s"],
    [59, "59 s"],
    [90, "1 min 30 s"],
    [3600, "1 h"],
    [5400, "1 h 30 min"],
    [86_400 + 3600, "1 d 1 h"],
    [21 * 3600 + 59 * 60, "22 h"],
    [23 * 3600 + 59 * 60, "1 d"],
    [3599, "1 h"],
    [2 * 3600 - 10, "2 h"],
    [-90, "1 min 30 s"],
  ])("shows %i seconds as %s", (seconds, text) => expect(duration(seconds)).toBe(text));

  it("drops the second unit from ten of the first on", () => {
    expect(duration(11 * 3600 + 60)).toBe("11 h");
  });
});

it.each([
  [0.0004, "1 ms"],
  [0.25, "250 ms"],
  [2.34, "2.3 s"],
  [75, "1 min 15 s"],
])("took shows %d seconds as %s", (seconds, text) => expect(took(seconds)).toBe(text));

it.each([
  [0, "now"],
  [5, "in 5 min"],
  [-120, "2 h ago"],
])("relative shows a distance of %i minutes as %s", (minutes, text) => expect(relative(at(minutes), NOON)).toBe(text));

it.each([
  [60, /^today \d+:00/],
  [24 * 60, /^tomorrow 12:00/],
  [-24 * 60, /^yesterday 12:00/],
  [3 * 24 * 60, /^Fri/],
  [60 * 24 * 60, /2027/],
])("absolute shows %i minutes from now as briefly as is clear", (minutes, text) => {
  expect(absolute(at(minutes), NOON)).toMatch(text);
});

it("does not call a time that was scheduled 'now' or 'ago' once it is past", () => {
  expect(timeText(at(20), NOON, "ahead")).toBe(`in 20 min · ${absolute(at(20), NOON)}`);
  expect(timeText(at(-0.05), NOON, "ahead")).toBe(absolute(at(-0.05), NOON));
});
