import { expect, it } from "vitest";
import { formatJson, jsonProblem, prettyJson } from "./json";

it("indents as JSON.stringify does", () => {
  for (const value of [{ a: [1, { b: null }], c: {}, d: [], e: 'x "{,}" \\ y' }, [], 7, "a", [[["deep"]]]])
    expect(formatJson(JSON.stringify(value))).toBe(JSON.stringify(value, null, 2));
});

it("keeps every digit of a number", () => {
  expect(formatJson('{"id":9007199254740993,"price":1.50}')).toBe('{\n  "id": 9007199254740993,\n  "price": 1.50\n}');
});

it("says what is wrong with a text that is not JSON", () => {
  expect(jsonProblem('{"a": 1}')).toBeNull();
  expect(jsonProblem("{a: 1}")).toMatch(/JSON/);
  expect([prettyJson("{oops"), prettyJson("7")]).toEqual([null, null]);
});
