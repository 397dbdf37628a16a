/** Actions on the selected rows, and their result. */

import { call } from "../../../../api/client";
import { useWrite } from "../../../../api/database";
import type { AgentShape, TableShape } from "../../../../api/rest.generated";
import { count } from "../../../../components/text/labels";
import { ErrorText } from "../../../../components/ui/ErrorText";
import type { Row } from "./row/row";

interface Props {
  agent: AgentShape;
  table: TableShape;
  rows: Row[];
  onDone: () => void;
}

export function SelectedRows({ agent, table, rows: picked, onDone }: Props) {
  const path = { agent_id: agent.id, table: table.name };
  const remove = useWrite(
    (row_ids: number[]) => call("POST /agents/{agent_id}/db/tables/{table}/rows/delete", { path, body: { row_ids } }),
    onDone,
  );
  const restore = useWrite(
    (row_ids: number[]) => call("POST /agents/{agent_id}/db/tables/{table}/rows/restore", { path, body: { row_ids } }),
    () => {
      remove.reset();
      onDone();
    },
  );
  const live = picked.filter((row) => !row.isDeleted).map((row) => row.id);
  const deleted = picked.filter((row) => row.isDeleted).map((row) => row.id);
  const problem = remove.error ?? restore.error;
  return (
    <div className="chosen" role="status">
      {picked.length > 0 && (
        <p className="row">
          <strong>{picked.length} selected</strong>
          {live.length > 0 && (
            <button
              type="button"
              className="danger small"
              disabled={remove.isPending}
              onClick={() => remove.mutate(live)}
            >
              Delete {live.length}
            </button>
          )}
          {deleted.length > 0 && (
            <button
              type="button"
              className="small"
              disabled={restore.isPending}
              onClick={() => restore.mutate(deleted)}
            >
              Restore {deleted.length}
            </button>
          )}
        </p>
      )}
      {picked.length === 0 && remove.data && (
        <p className="row">
          {count(remove.data.deleted, "row")} deleted.
          <button type="button" className="small" onClick={() => restore.mutate(remove.data.row_ids)}>
            Undo
          </button>
        </p>
      )}
      {picked.length === 0 && !remove.data && restore.data && <p>{count(restore.data.restored, "row")} restored.</p>}
      <ErrorText error={problem} />
    </div>
  );
}
