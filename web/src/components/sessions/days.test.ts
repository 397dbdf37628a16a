import { expect, test } from "vitest";
import { groupByDay, timeInDay } from "./days";

const NOW = new Date(2026, 10, 17, 9, 30).getTime();
const at = (...date: [number, number, number, number?, number?]) => ({ updated_at: new Date(...date).toISOString() });

test("sessions are grouped by the calendar day, not by hours", () => {
  const late = at(2026, 10, 16, 23, 59);
  const early = at(2026, 10, 16, 0, 0);
  const found = groupByDay([at(2026, 10, 17, 0, 0), late, early, at(2026, 10, 15, 23, 59), at(2025, 1, 1)], NOW);
  expect(found.map(({ day, sessions }) => [day, sessions.length])).toEqual([
    ["Today", 1],
    ["Yesterday", 2],
    ["Earlier", 2],
  ]);
  expect(found[1]?.sessions).toEqual([late, early]);
});

test("a session that the server's clock puts a little ahead is of today", () => {
  expect(groupByDay([at(2026, 10, 17, 9, 31)], NOW)[0]?.day).toBe("Today");
});

test("the day after a clock change is still yesterday", () => {
  // In zones with summer time one of these days has 23 hours and another 25.
  for (let day = 1; day < 365; day++) {
    const now = new Date(2026, 0, day + 1, 0, 30).getTime();
    expect(groupByDay([at(2026, 0, day, 23, 30)], now)[0]?.day).toBe("Yesterday");
  }
});

test("times are as short as their heading allows", () => {
  expect(timeInDay(new Date(2026, 10, 16, 14, 5), NOW)).toMatch(/2:05|14:05/);
  expect(timeInDay(new Date(2026, 10, 12, 14, 5), NOW)).toMatch(/^\p{L}+\.?$/u);
  expect(timeInDay(new Date(2026, 2, 3), NOW)).toMatch(/^(3\D+|\D+ 3)$/);
  expect(timeInDay(new Date(2025, 2, 3), NOW)).toMatch(/25/);
});
