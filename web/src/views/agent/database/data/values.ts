/** Conversion of typed text to column values. */

import type { ColumnShape, ViewShape } from "../../../../api/rest.generated";

/** The way a column is shown and edited. SQLite's own types that are not among ours have only an affinity. */
export type Kind = NonNullable<ColumnShape["declared"]>;

export function kindOf({ declared, type }: Pick<ColumnShape, "declared" | "type">): Kind {
  return declared ?? (/INT|REAL|NUM|FLOA|DOUB|DEC/i.test(type) ? "real" : "text");
}

/** The type of a column in the words of its declaration. */
export function typeText({ declared, type }: Pick<ColumnShape, "declared" | "type">): string {
  return declared ?? (type.toLowerCase() || "any");
}

export function isNumeric(column: Pick<ColumnShape, "declared" | "type">): boolean {
  return ["integer", "real"].includes(kindOf(column));
}

/** Return a number for a numeric column if JavaScript can represent it exactly; else the text. */
export function typed(column: Pick<ColumnShape, "declared" | "type">, text: string): string | number {
  const number = Number(text);
  const isStoredAsNumber = isNumeric(column) || kindOf(column) === "boolean";
  if (!isStoredAsNumber || text.trim() === "" || !Number.isFinite(number)) return text;
  return Number.isInteger(number) && !Number.isSafeInteger(number) ? text : number;
}

/** Return the body of a request that saves a view; a required parameter has no default. */
export function definition(view: ViewShape) {
  const parameters = view.parameters.map(({ name, description, default: given }) =>
    view.required_parameters.includes(name) ? { name, description } : { name, description, default: given },
  );
  return { sql: view.sql, description: view.description, parameters, render: view.render };
}

/** Return a number if a text is one, else the text. */
export function toValue(text: string): string | number {
  return text.trim() !== "" && String(Number(text)) === text.trim() ? Number(text) : text;
}
