/** Conversion of typed text to column values. */

import type { ColumnShape, ViewShape } from "../../../../api/rest.generated";

export function isNumeric(column: Pick<ColumnShape, "type">): boolean {
  return /INT|REAL|NUM|FLOA|DOUB|DEC/i.test(column.type);
}

/** Return a number for a numeric column if JavaScript can represent it exactly; else the text. */
export function typed(column: ColumnShape, text: string): string | number {
  const number = Number(text);
  if (!isNumeric(column) || text.trim() === "" || !Number.isFinite(number)) return text;
  return Number.isInteger(number) && !Number.isSafeInteger(number) ? text : number;
}

export const OPERATORS = {
  contains: "contains",
  is: "is",
  not: "is not",
  less: "is less than",
  more: "is more than",
  null: "is null",
  something: "is not null",
} as const;

export type Operator = keyof typeof OPERATORS;

/** Return a filter condition in the form that the server expects. */
export function condition(column: ColumnShape, operator: Operator, text: string): string {
  const value = typed(column, text);
  const test = {
    contains: { like: `%${text}%` },
    is: { eq: value },
    not: { ne: value },
    less: { lt: value },
    more: { gt: value },
    null: { is_null: true },
    something: { is_null: false },
  }[operator];
  return JSON.stringify({ [column.name]: test });
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
