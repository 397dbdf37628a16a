/** Refusals of the server at the field of a form that they are about. */

import { ApiError, explain } from "../../api/client";

/** Return whether an error is about one of these fields of the request. */
export function isAbout(error: unknown, fields: readonly string[]): error is ApiError {
  return error instanceof ApiError && error.field !== undefined && fields.includes(error.field);
}

/** Return the text of an error with the labels of a form instead of the names of the request's fields. */
export function withLabels(text: string, labels: Readonly<Record<string, string>>): string {
  return text.replace(/[`'](\w+)[`']/g, (whole, name: string) =>
    Object.hasOwn(labels, name) ? `“${labels[name]}”` : whole,
  );
}

interface Props {
  id: string; // for `aria-describedby` of the field
  error: unknown;
  toText?: (error: unknown) => string;
}

export function FieldError({ id, error, toText = explain }: Props) {
  if (!error) return null;
  return (
    <span id={id} className="bad-text" role="alert">
      {toText(error)}
    </span>
  );
}
