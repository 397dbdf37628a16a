/** One row: its values, its history, and a form to edit it or to add another. */

import { useState } from "react";
import { call } from "../../../../api/client";
import { useWrite } from "../../../../api/database";
import type { AgentShape, ColumnShape, TableShape } from "../../../../api/rest.generated";
import { Dialog } from "../../../../components/ui/Dialog";
import { ErrorText } from "../../../../components/ui/ErrorText";
import { Form } from "../../../../components/ui/Form";
import { Changes } from "../Changes";
import type { Row } from "./Data";
import { prettyJson, WholeValue } from "./Value";
import { isNumeric, typed } from "./values";
import "../../../runs/RunSummary.css"; // for `.why`
import "./RowDialog.css";

interface Props {
  agent: AgentShape;
  table: TableShape;
  row: Row;
  onClose: () => void;
}

export function RowDialog({ agent, table, row, onClose }: Props) {
  const [isEditing, setEditing] = useState(false);
  const path = { agent_id: agent.id, table: table.name };
  const body = { row_ids: [row.id] };
  const remove = useWrite(() => call("POST /agents/{agent_id}/db/tables/{table}/rows/delete", { path, body }), onClose);
  const restore = useWrite(() => call("POST /agents/{agent_id}/db/tables/{table}/rows/restore", { path, body }));
  const problem = remove.error ?? restore.error;
  return (
    <Dialog title={`${table.name} #${row.id}`} onClose={onClose}>
      {isEditing ? (
        <EditRow agent={agent} table={table} row={row} onDone={() => setEditing(false)} />
      ) : (
        <>
          <div className="row">
            {row.isDeleted ? (
              <button type="button" onClick={() => restore.mutate(undefined)}>
                Restore
              </button>
            ) : (
              <>
                <button type="button" onClick={() => setEditing(true)}>
                  Edit
                </button>
                <button type="button" className="danger" onClick={() => remove.mutate(undefined)}>
                  Delete
                </button>
              </>
            )}
            {row.isDeleted && <span className="badge bad">deleted</span>}
          </div>
          <ErrorText error={problem} />
          <dl className="row-values">
            {table.columns.map((column) => (
              <div key={column.name} className={column.system ? "is-system" : undefined}>
                <dt>{column.name}</dt>
                <dd>
                  <WholeValue value={row.get(column.name)} />
                </dd>
              </div>
            ))}
          </dl>
          <details className="why">
            <summary>History</summary>
            <Changes
              agentId={agent.id}
              zone={agent.zone}
              which={{ table: table.name, row_id: row.id }}
              nothing="No changes recorded."
            />
          </details>
        </>
      )}
    </Dialog>
  );
}

type Texts = Record<string, string | null>; // null: NULL

function EditRow({
  agent,
  table,
  row,
  onDone,
}: {
  agent: AgentShape;
  table: TableShape;
  row: Row;
  onDone: () => void;
}) {
  // The changelog identifies a row by its id, so that cannot be edited; binary values only the agent can change.
  const isNumber = (column: ColumnShape) => column.primary_key && isNumeric(column);
  const isBinary = ({ name }: ColumnShape) => row.get(name) !== null && typeof row.get(name) === "object";
  const shown = table.columns.filter((column) => !column.system && !isNumber(column) && !isBinary(column));
  const before: Texts = Object.fromEntries(
    shown.map(({ name }) => [name, row.get(name) === null ? null : String(row.get(name))]),
  );
  const [texts, setTexts] = useState(before);
  const changed = shown.filter(({ name }) => texts[name] !== before[name]);
  const save = useWrite(
    () =>
      call("PATCH /agents/{agent_id}/db/tables/{table}/rows", {
        path: { agent_id: agent.id, table: table.name },
        body: { row_ids: [row.id], changes: valuesOf(changed, texts) },
      }),
    onDone,
  );
  return (
    <RowForm
      columns={shown}
      texts={texts}
      onChange={setTexts}
      action="Save"
      error={save.error}
      isBusy={save.isPending}
      onSubmit={() => (changed.length ? save.mutate(undefined) : onDone())}
      onCancel={onDone}
    />
  );
}

export function NewRowDialog({ agent, table, onClose }: Omit<Props, "row">) {
  const columns = table.columns.filter((column) => !column.system);
  const [texts, setTexts] = useState<Texts>({});
  const save = useWrite(
    () =>
      call("POST /agents/{agent_id}/db/tables/{table}/rows", {
        path: { agent_id: agent.id, table: table.name },
        body: { rows: [valuesOf(columns, texts)] },
      }),
    onClose,
  );
  return (
    <Dialog title={`Add a row to ${table.name}`} onClose={onClose}>
      <RowForm
        columns={columns}
        texts={texts}
        onChange={setTexts}
        action="Add"
        error={save.error}
        isBusy={save.isPending}
        onSubmit={() => save.mutate(undefined)}
        onCancel={onClose}
      />
    </Dialog>
  );
}

/** Return the values of the fields that were filled in; the others get the table's defaults. */
function valuesOf(columns: ColumnShape[], texts: Texts): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const column of columns) {
    const text = texts[column.name];
    if (text !== undefined)
      values[column.name] = text === null || (text === "" && isNumeric(column)) ? null : typed(column, text);
  }
  return values;
}

interface FormProps {
  columns: ColumnShape[];
  texts: Texts;
  onChange: (texts: Texts) => void;
  action: string;
  error: unknown;
  isBusy: boolean;
  onSubmit: () => void;
  onCancel: () => void;
}

function RowForm({ columns, texts, onChange, action, error, isBusy, onSubmit, onCancel }: FormProps) {
  return (
    <Form onSubmit={onSubmit}>
      {columns.map((column) => {
        const text = texts[column.name];
        const set = (value: string | null) => onChange({ ...texts, [column.name]: value });
        const shared = {
          value: text ?? "",
          placeholder: text === null ? "null" : text === undefined ? emptyValue(column) : "",
        };
        const isLong = (text?.length ?? 0) > 60 || text?.includes("\n") || prettyJson(text ?? "") !== null;
        return (
          <div key={column.name} className="field">
            {/* biome-ignore lint/a11y/noLabelWithoutControl: the control is one of the two below */}
            <label>
              <span>
                {column.name} <span className="muted small">{column.type.toLowerCase()}</span>
              </span>
              {isNumeric(column) ? (
                <input {...shared} inputMode="decimal" onChange={(event) => set(event.target.value)} />
              ) : (
                <textarea {...shared} rows={isLong ? 6 : 1} onChange={(event) => set(event.target.value)} />
              )}
            </label>
            {!column.required && !column.primary_key && text !== null && text !== undefined && (
              <button type="button" className="quiet small as-null" onClick={() => set(null)}>
                Set {column.name} to null
              </button>
            )}
          </div>
        );
      })}
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

/** The value a field gets when it is left empty. */
function emptyValue(column: ColumnShape): string {
  if (column.default !== null) return `default ${column.default}`;
  return column.primary_key ? "set by the database" : column.required ? "required" : "null";
}
