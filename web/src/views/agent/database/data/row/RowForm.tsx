/** The fields of a row, by the types of its columns. */

import { useState } from "react";
import type { ColumnShape } from "../../../../../api/rest.generated";
import { ErrorText } from "../../../../../components/ui/ErrorText";
import { Form } from "../../../../../components/ui/Form";
import { kindOf, typed } from "../values";
import { Field } from "./Field";
import { jsonProblem } from "./json";

export type Texts = Record<string, string | null>; // null: NULL

/** Return the values of the fields that were filled in; the others get the table's defaults. */
export function valuesOf(columns: ColumnShape[], texts: Texts): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const column of columns) {
    const text = texts[column.name];
    if (text !== undefined)
      values[column.name] = text === null || (text === "" && kindOf(column) !== "text") ? null : typed(column, text);
  }
  return values;
}

interface Props {
  columns: ColumnShape[];
  texts: Texts;
  before: Texts;
  onChange: (texts: Texts) => void;
  action: string;
  error: unknown;
  isBusy: boolean;
  onSubmit: () => void;
  onCancel: () => void;
}

export function RowForm({ columns, texts, before, onChange, action, error, isBusy, onSubmit, onCancel }: Props) {
  const [isChecked, setChecked] = useState(false); // from the first attempt to save on
  const problems = new Map(columns.map((column) => [column.name, problemOf(column, texts, before)]));
  const submit = () => {
    setChecked(true);
    if (![...problems.values()].some(Boolean)) onSubmit();
  };
  return (
    <Form onSubmit={submit}>
      {columns.map((column) => (
        <Field
          key={column.name}
          column={column}
          text={texts[column.name]}
          problem={isChecked ? (problems.get(column.name) ?? null) : null}
          onChange={(text) => onChange({ ...texts, [column.name]: text })}
        />
      ))}
      <ErrorText error={error} />
      <div className="row end">
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
        <button type="submit" className="primary" disabled={isBusy}>
          {action}
        </button>
      </div>
    </Form>
  );
}

/** The problem of a changed field that the server would not notice: JSON is text for SQLite. */
function problemOf(column: ColumnShape, texts: Texts, before: Texts): string | null {
  const text = texts[column.name];
  if (kindOf(column) !== "json" || !text || text === before[column.name]) return null;
  return jsonProblem(text);
}
