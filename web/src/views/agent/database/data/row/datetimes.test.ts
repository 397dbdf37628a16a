import { expect, it } from "vitest";
import { fromPicker, isDay, isInstant, toPicker } from "./datetimes";

it("shows a time with a zone in the viewer's zone, and stores it in UTC", () => {
  const stored = "2026-11-19T08:00:00Z";
  const picked = toPicker(stored) ?? "";
  expect(new Date(picked).getTime()).toBe(Date.parse(stored));
  expect(fromPicker(picked, stored)).toBe(stored);
  expect(fromPicker(picked, "")).toBe(stored);
  expect(isInstant("2026-11-19T10:00:00+02:00")).toBe(true);
});

it("leaves a time without a zone as it is", () => {
  expect(toPicker("2026-11-19 08:00")).toBe("2026-11-19T08:00");
  expect(fromPicker("2026-11-19T09:30", "2026-11-19 08:00")).toBe("2026-11-19 09:30");
  expect(isInstant("2026-11-19 08:00")).toBe(false);
});

it("does not take other texts for dates", () => {
  expect([toPicker("tomorrow"), toPicker("")]).toEqual([null, ""]);
  expect([isDay("2026-11-19"), isDay("2026-13-19"), isDay("19.11.2026")]).toEqual([true, false, false]);
});
