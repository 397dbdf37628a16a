/** Refusals of a model's fields, in the words of the form. */

import { ApiError, explain } from "../../api/client";
import { isAbout, withLabels } from "../ui/FieldError";

const LABELS = {
  address: "Address",
  key: "Key",
  model: "Model",
  name: "Name",
  context_window: "Context window",
  output_limit: "Output limit",
  input_price: "Input price",
  output_price: "Output price",
} as const;

export type ModelField = keyof typeof LABELS;

/** Instructions for the command line and the API, which a form has buttons for. */
const FOR_PROGRAMS = [
  / To save it without this check, use `--no-check` \(`check: false`\)\./,
  / \(`wakeful model \w+ [^)]*\)/,
  / `wakeful model ls` and GET \/models list them\./,
];

/** The text of a refusal, without the names of the API and of commands. */
export function refusalText(error: unknown): string {
  return withLabels(
    FOR_PROGRAMS.reduce((text, words) => text.replace(words, ""), explain(error)),
    LABELS,
  );
}

/** The first of these errors that is about a field of the form, or (null) about none. */
export function errorAt(field: ModelField | null, ...errors: unknown[]): unknown {
  const fields = Object.keys(LABELS);
  return errors.find((error) => error && (field === null ? !isAbout(error, fields) : isAbout(error, [field])));
}

/** Return whether a model was refused only because its endpoint could not confirm it. */
export function isUnconfirmed(error: unknown): boolean {
  return error instanceof ApiError && ["model_unchecked", "model_not_listed"].includes(error.code);
}
