import { describe, expect, it } from "vitest";
import { earlier, later, latest, withTurn } from "./window";

describe("the rendered part of a transcript", () => {
  it("is the latest turns at first", () => {
    expect(latest(1000)).toEqual({ first: 984, end: null });
    expect(latest(3)).toEqual({ first: 0, end: null });
  });
  it("is what is near a message after a jump, without the turns in between", () => {
    expect(withTurn(latest(1000), 0, 1000)).toEqual({ first: 0, end: 8 });
    expect(withTurn(latest(1000), 500, 1000)).toEqual({ first: 492, end: 508 });
    expect(withTurn({ first: 0, end: 8 }, 995, 1000)).toEqual({ first: 987, end: null });
  });
  it("stays if it has the message", () => {
    const shown = latest(1000);
    expect(withTurn(shown, 990, 1000)).toBe(shown);
  });
  it("grows at either end, up to the first and the latest turn", () => {
    expect(earlier({ first: 2, end: 8 })).toEqual({ first: 0, end: 8 });
    expect(later({ first: 0, end: 8 }, 1000)).toEqual({ first: 0, end: 10 });
    expect(later({ first: 0, end: 8 }, 10)).toEqual({ first: 0, end: null });
  });
});
