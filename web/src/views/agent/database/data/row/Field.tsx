/** A field for the value of one column. */

import { type ReactNode, useId } from "react";
import type { ColumnShape } from "../../../../../api/rest.generated";
import { isNumeric, kindOf, typeText } from "../values";
import { fromPicker, isDay, toPicker } from "./datetimes";
import { formatJson, jsonProblem, prettyJson } from "./json";

interface Props {
  column: ColumnShape;
  text: string | null | undefined; // null: NULL; undefined: not filled in
  problem: string | null;
  onChange: (text: string | null) => void;
}

export function Field({ column, text, problem, onChange }: Props) {
  const id = useId();
  const Control = controlOf(column, text ?? "");
  return (
    <div className="field">
      <div className="field-head">
        <label htmlFor={id}>
          {column.name} <span className="muted small">{typeText(column)}</span>
        </label>
        {kindOf(column) === "json" && text && jsonProblem(text) === null && (
          <button type="button" className="quiet small" onClick={() => onChange(formatJson(text))}>
            Format<span className="hidden"> {column.name}</span>
          </button>
        )}
        {!column.required && !column.primary_key && text !== null && text !== undefined && (
          <button type="button" className="quiet small" onClick={() => onChange(null)}>
            Set to null<span className="hidden"> for {column.name}</span>
          </button>
        )}
      </div>
      <Control id={id} column={column} text={text} problem={problem} onChange={onChange} />
    </div>
  );
}

interface ControlProps extends Props {
  id: string;
}

/** Return the control of a type. A value that a picker cannot show is edited as text. */
function controlOf(column: ColumnShape, text: string) {
  const kind = kindOf(column);
  if (kind === "boolean" && ["", "0", "1"].includes(text)) return Checkbox;
  if (kind === "date" && (text === "" || isDay(text))) return DayPicker;
  if (kind === "datetime" && toPicker(text) !== null) return TimePicker;
  if (kind === "json") return JsonArea;
  return isNumeric(column) ? NumberInput : TextArea;
}

function Checkbox({ id, column, text, onChange }: ControlProps) {
  const isOpen = text === null || text === undefined;
  return (
    <span className="row boolean-field">
      <input
        id={id}
        type="checkbox"
        checked={text === "1"}
        ref={(box) => {
          if (box) box.indeterminate = isOpen;
        }}
        onChange={(event) => onChange(event.target.checked ? "1" : "0")}
      />
      <span className={isOpen ? "muted" : undefined}>
        {isOpen ? placeholder(column, text) : text === "1" ? "yes" : "no"}
      </span>
    </span>
  );
}

function DayPicker({ id, column, text, onChange }: ControlProps) {
  return (
    <Picked column={column} text={text}>
      <input id={id} type="date" value={text ?? ""} onChange={(event) => onChange(event.target.value)} />
    </Picked>
  );
}

function TimePicker({ id, column, text, onChange }: ControlProps) {
  return (
    <Picked column={column} text={text}>
      <input
        id={id}
        type="datetime-local"
        value={toPicker(text ?? "") ?? ""}
        onChange={(event) => onChange(fromPicker(event.target.value, text ?? ""))}
      />
    </Picked>
  );
}

/** Pickers have no placeholder, so that the value of an empty one is beside it. */
function Picked({ column, text, children }: Pick<Props, "column" | "text"> & { children: ReactNode }) {
  return (
    <span className="row">
      {children}
      {(text === null || text === undefined) && <span className="muted small">{placeholder(column, text)}</span>}
    </span>
  );
}

function JsonArea({ id, column, text, problem, onChange }: ControlProps) {
  const problemId = `${id}-problem`;
  return (
    <>
      <textarea
        id={id}
        className="mono"
        rows={Math.min(14, Math.max(3, (text ?? "").split("\n").length))}
        spellCheck={false}
        value={text ?? ""}
        placeholder={placeholder(column, text)}
        aria-invalid={problem !== null || undefined}
        aria-describedby={problem === null ? undefined : problemId}
        onChange={(event) => onChange(event.target.value)}
      />
      {problem !== null && (
        <p id={problemId} className="bad-text small" role="alert">
          This is not JSON: {problem}
        </p>
      )}
    </>
  );
}

function NumberInput({ id, column, text, onChange }: ControlProps) {
  return (
    <input
      id={id}
      inputMode="decimal"
      value={text ?? ""}
      placeholder={placeholder(column, text)}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}

function TextArea({ id, column, text, onChange }: ControlProps) {
  const isLong = (text?.length ?? 0) > 60 || text?.includes("\n") || prettyJson(text ?? "") !== null;
  return (
    <textarea
      id={id}
      rows={isLong ? 6 : 1}
      value={text ?? ""}
      placeholder={placeholder(column, text)}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}

/** The value that a field has while it is empty. */
function placeholder(column: ColumnShape, text: string | null | undefined): string {
  if (text === null) return "null";
  if (text !== undefined) return "";
  if (column.default !== null) return `default ${defaultText(column)}`;
  return column.primary_key ? "set by the database" : column.required ? "required" : "null";
}

function defaultText(column: ColumnShape): string {
  if (kindOf(column) !== "boolean") return column.default ?? "";
  return column.default === "1" ? "yes" : column.default === "0" ? "no" : (column.default ?? "");
}
