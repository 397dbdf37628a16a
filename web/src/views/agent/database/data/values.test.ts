import { expect, it } from "vitest";
import type { ColumnShape } from "../../../../api/rest.generated";
import { condition, toValue, typed } from "./values";

const column = (type: string) => ({ name: "n", type }) as ColumnShape;

it.each([
  ["INTEGER", "42", 42],
  ["INTEGER", "9007199254740993", "9007199254740993"], // not exact as a number
  ["TEXT", "42", "42"],
  ["REAL", "1e3", 1000],
  ["REAL", " ", " "],
  ["INTEGER", "Infinity", "Infinity"],
])("a column of %s takes %s as %s", (type, text, value) => expect(typed(column(type), text)).toBe(value));

it("writes a filter as the server reads it", () => {
  expect(JSON.parse(condition(column("TEXT"), "contains", "a"))).toEqual({ n: { like: "%a%" } });
  expect(JSON.parse(condition(column("INTEGER"), "less", "3"))).toEqual({ n: { lt: 3 } });
  expect(JSON.parse(condition(column("TEXT"), "something", ""))).toEqual({ n: { is_null: false } });
});

it("keeps texts that only look like numbers", () => {
  expect([toValue("7"), toValue("007"), toValue("")]).toEqual([7, "007", ""]);
});
