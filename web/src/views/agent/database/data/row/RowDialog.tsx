/** One row: its values, its history, and a form to edit it or to add another. */

import { useState } from "react";
import { call } from "../../../../../api/client";
import { type Cell, useWrite } from "../../../../../api/database";
import type { AgentShape, ColumnShape, TableShape } from "../../../../../api/rest.generated";
import { Dialog } from "../../../../../components/ui/Dialog";
import { ErrorText } from "../../../../../components/ui/ErrorText";
import { Changes } from "../../Changes";
import { isYesOrNo, TypedValue } from "../TypedValue";
import { WholeValue } from "../Value";
import { isNumeric, kindOf } from "../values";
import { RowForm, type Texts, valuesOf } from "./RowForm";
import { type Row, title } from "./row";
import "../../../../runs/RunSummary.css"; // for `.why`
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
            {table.columns
              .filter((column) => column.name !== "_deleted_at" || row.isDeleted)
              .map((column) => (
                <div key={column.name} className={column.system ? "is-system" : undefined}>
                  <dt>{title(column)}</dt>
                  <dd>
                    <DialogValue value={row.get(column.name)} column={column} zone={agent.zone} />
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

function DialogValue({ value, column, zone }: { value: Cell; column: ColumnShape; zone: string }) {
  if (isYesOrNo(column, value)) return value === 1 ? "yes" : "no";
  if (column.system || kindOf(column) === "datetime") return <TypedValue value={value} column={column} zone={zone} />;
  return <WholeValue value={value} />;
}

function EditRow({ agent, table, row, onDone }: Omit<Props, "onClose"> & { onDone: () => void }) {
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
      before={before}
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
  const columns = table.columns.filter((column) => !column.system && kindOf(column) !== "blob");
  const [texts, setTexts] = useState<Texts>(() =>
    // An untouched checkbox would otherwise mean null, which a required column refuses.
    Object.fromEntries(
      columns
        .filter((each) => kindOf(each) === "boolean" && each.required && each.default === null)
        .map((each) => [each.name, "0"]),
    ),
  );
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
        before={{}}
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
