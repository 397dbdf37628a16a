import { expect, it } from "vitest";
import type { Render } from "../../../../api/database";
import { subtitleOf, titleOf, toRows } from "./grid";

const rowsOf = (renders: string, width: number) =>
  toRows(
    renders.split(" ").map((render) => ({ render: render as Render })),
    width,
  ).map((row) => row.map(({ item, units }) => `${item.render} ${units}`).join(", "));

it("puts a lone number and a pie beside charts", () => {
  expect(rowsOf("bar line table pie number", 1092)).toEqual(["number 2, bar 4, line 4", "table 4, pie 3"]);
});

it("puts several numbers in a row", () => {
  expect(rowsOf("number number number number number number bar line", 1092)).toEqual([
    "number 2, number 2, number 2, number 2, number 2, number 2",
    "bar 4, line 4",
  ]);
});

it("leaves no row much emptier than the others", () => {
  expect(rowsOf("bar bar bar bar", 1092)).toEqual(["bar 4, bar 4", "bar 4, bar 4"]);
});

it("has one view in a row on a phone, but two numbers", () => {
  expect(rowsOf("number number bar pie", 366)).toEqual(["number 2, number 2", "bar 4", "pie 3"]);
  expect(rowsOf("bar", 60)).toEqual(["bar 1"]);
});

it("has titles for people", () => {
  expect(titleOf({ name: "kilos_by_plant", description: "" })).toBe("Kilos by plant");
  expect(titleOf({ name: "open_tasks", description: "What is still to do." })).toBe("What is still to do");
  expect(subtitleOf({ name: "open_tasks", description: "What is still to do" })).toBe("Open tasks");
  const long = "Everything that was harvested this year, by plant and by week, without what was given away";
  expect([titleOf({ name: "a", description: long }), subtitleOf({ name: "a", description: long })]).toEqual([
    "A",
    long,
  ]);
});
