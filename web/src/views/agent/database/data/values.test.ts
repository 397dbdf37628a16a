import { expect, it } from "vitest";
import type { ColumnShape } from "../../../../api/rest.generated";
import { kindOf, toValue, typed, typeText } from "./values";

const column = (type: string, declared: ColumnShape["declared"] = null) =>
  ({ name: "n", type, declared }) as ColumnShape;

it.each([
  ["INTEGER", "integer", "42", 42],
  ["INTEGER", "integer", "9007199254740993", "9007199254740993"], // not exact as a number
  ["INTEGER", "boolean", "1", 1],
  ["TEXT", "text", "42", "42"],
  ["TEXT", "date", "2026", "2026"],
  ["REAL", "real", "1e3", 1000],
  ["REAL", "real", " ", " "],
  ["INTEGER", "integer", "Infinity", "Infinity"],
  ["DECIMAL(5, 2)", null, "3", 3],
] as const)("a column of %s (%s) takes %s as %s", (type, declared, text, value) =>
  expect(typed(column(type, declared), text)).toBe(value),
);

it("shows the declared type, or SQLite's if there is none", () => {
  expect(typeText(column("INTEGER", "boolean"))).toBe("boolean");
  expect([typeText(column("VARCHAR(9)")), kindOf(column("VARCHAR(9)"))]).toEqual(["varchar(9)", "text"]);
  expect(typeText(column(""))).toBe("any");
});

it("keeps texts that only look like numbers", () => {
  expect([toValue("7"), toValue("007"), toValue("")]).toEqual([7, "007", ""]);
});
