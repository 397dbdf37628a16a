/** A value as its column declares it: yes or no, a time in the viewer's zone, or text. */

import { call } from "../../../../api/client";
import { type Cell, useWrite } from "../../../../api/database";
import type { AgentShape, ColumnShape, TableShape } from "../../../../api/rest.generated";
import { Time } from "../../../../components/text/times";
import { ErrorText } from "../../../../components/ui/ErrorText";
import { isInstant } from "./row/datetimes";
import type { Row } from "./row/row";
import { Value } from "./Value";
import { kindOf } from "./values";

interface Props {
  value: Cell;
  column: ColumnShape;
  zone: string;
}

export function TypedValue({ value, column, zone }: Props) {
  const isTime = column.system || kindOf(column) === "datetime";
  if (isTime && typeof value === "string" && isInstant(value)) return <Time at={value} zone={zone} />;
  return <Value value={value} name={column.name} opens={false} />;
}

/** A value that is 0 or 1 in a boolean column. */
export function isYesOrNo(column: ColumnShape, value: Cell): value is 0 | 1 {
  return kindOf(column) === "boolean" && (value === 0 || value === 1);
}

interface CellProps {
  agent: AgentShape;
  table: TableShape;
  row: Row;
  column: ColumnShape;
}

/** A value in a list of rows: a boolean is a checkbox that changes the row. */
export function CellValue({ agent, table, row, column }: CellProps) {
  const value = row.get(column.name);
  if (!isYesOrNo(column, value)) return <TypedValue value={value} column={column} zone={agent.zone} />;
  return <Checkbox agent={agent} table={table} row={row} column={column} isOn={value === 1} />;
}

function Checkbox({ agent, table, row, column, isOn }: CellProps & { isOn: boolean }) {
  const save = useWrite((value: number) =>
    call("PATCH /agents/{agent_id}/db/tables/{table}/rows", {
      path: { agent_id: agent.id, table: table.name },
      body: { row_ids: [row.id], changes: { [column.name]: value } },
    }),
  );
  return (
    <label className="yes-or-no">
      <input
        type="checkbox"
        aria-label={`${column.name} of row ${row.id}`}
        checked={save.isPending ? !isOn : isOn}
        disabled={row.isDeleted || save.isPending}
        onChange={(event) => save.mutate(event.target.checked ? 1 : 0)}
      />
      <ErrorText error={save.error} />
    </label>
  );
}
