import { expect, it } from "vitest";
import { kindText, reasonOf, reasonText, statusOf } from "./labels";

it("shows a run without an answer as such, not as done", () => {
  expect(statusOf({ status: "success", note: "did_nothing" })).toEqual({ text: "did nothing", tone: "wait" });
  expect(statusOf({ status: "success", note: "budget" })).toEqual({ text: "done", tone: "good" });
});

it("shows no reason that the status has said already", () => {
  expect(reasonOf({ status: "success", reason: "did_nothing", note: "did_nothing" })).toBeNull();
  expect(reasonOf({ status: "stopped", reason: "stopped", note: null })).toBeNull();
  expect(reasonOf({ status: "failed", reason: "error", note: null })).toBeNull();
  expect(reasonOf({ status: "skipped", reason: "missed", note: null })).toBe("missed");
});

it("shows codes of a newer server as words", () => {
  expect(reasonText("moon_phase")).toBe("moon phase");
  expect(reasonText("constructor")).toBe("constructor");
  expect(statusOf({ status: "asleep" })).toEqual({ text: "asleep", tone: "calm" });
  expect(kindText("toString")).toBe("toString");
});
