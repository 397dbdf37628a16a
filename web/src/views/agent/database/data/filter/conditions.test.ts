import { expect, it } from "vitest";
import type { ColumnShape } from "../../../../../api/rest.generated";
import { conditionText, operatorsOf, readConditions, whereOf, writeConditions } from "./conditions";

const column = (name: string, declared: ColumnShape["declared"], type = "TEXT") =>
  ({ name, declared, type, system: name.startsWith("_") }) as ColumnShape;
const COLUMNS = [
  column("title", "text"),
  column("cost", "integer", "INTEGER"),
  column("done", "boolean", "INTEGER"),
  column("due", "date"),
  column("_updated_at", "text"),
];

it("writes several conditions as the server reads them, also two on one column", () => {
  const read = readConditions(
    '[["title","contains","a"],["title","contains","b"],["cost","less","3"],["done","is","0"],["due","something"]]',
    COLUMNS,
  );
  expect(JSON.parse(whereOf(read, COLUMNS) ?? "")).toEqual([
    { title: { like: "%a%" } },
    { title: { like: "%b%" } },
    { cost: { lt: 3 } },
    { done: { eq: 0 } },
    { due: { is_null: false } },
  ]);
  expect(readConditions(writeConditions(read), COLUMNS)).toEqual(read);
});

it.each(["{", "7", '[["gone","is","1"]]', '[["done","contains","1"]]', "[null]", ""])(
  "leaves out anything but a condition: %s",
  (text) => {
    expect(readConditions(text, COLUMNS)).toEqual([]);
    expect(whereOf([], COLUMNS)).toBeNull();
    expect(writeConditions([])).toBeNull();
  },
);

it("says a condition in words, by the type of its column", () => {
  const texts = readConditions('[["done","is","0"],["due","less","2026-11-20"],["_updated_at","more","x"]]', COLUMNS);
  expect(texts.map((each) => conditionText(each, COLUMNS))).toEqual([
    "done is no",
    "due is before 2026-11-20",
    "changed is after x",
  ]);
  expect(operatorsOf(column("done", "boolean")).map(([, word]) => word)).toEqual(["is", "is null", "is not null"]);
});
