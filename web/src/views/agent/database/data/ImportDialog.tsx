/** Import rows from a file, into an existing or a new table. */

import { useState } from "react";
import { call } from "../../../../api/client";
import { useWrite } from "../../../../api/database";
import type { AgentShape, Imported, NewImport } from "../../../../api/rest.generated";
import { MAX_LENGTH } from "../../../../api/server.generated";
import { count } from "../../../../components/text/labels";
import { Dialog } from "../../../../components/ui/Dialog";
import { ErrorText } from "../../../../components/ui/ErrorText";
import { Form } from "../../../../components/ui/Form";

interface Props {
  agent: AgentShape;
  table?: string; // the current table, which is the default
  onDone: (table: string) => void;
  onClose: () => void;
}

export function ImportDialog({ agent, table, onDone, onClose }: Props) {
  const [file, setFile] = useState<File | null>(null);
  const [name, setName] = useState(table ?? "");
  const write = useWrite(
    async (file: File) => {
      if (file.size > MAX_LENGTH.NewImport.text)
        throw new Error(`“${file.name}” is larger than ${MAX_LENGTH.NewImport.text / 1024 ** 2} MB. Split it.`);
      const body: NewImport = { table: name, format: formatOf(file.name), text: await file.text(), source: file.name };
      return call("POST /agents/{agent_id}/db/import", { path: { agent_id: agent.id }, body });
    },
    (done) => table === undefined && onDone(done.table), // the first import: show its rows
  );
  const choose = (chosen: File | null) => {
    setFile(chosen);
    write.reset();
    if (chosen && !name) setName(tableOf(chosen.name));
  };
  return (
    <Dialog title="Import a file" onClose={onClose}>
      {write.data ? (
        <Report done={write.data} onShow={() => onDone(write.data.table)} />
      ) : (
        <Form act={write} onSubmit={() => file && write.mutate(file)}>
          <label className="field">
            File
            <input
              type="file"
              accept=".csv,.json,.jsonl,.ndjson,text/csv,application/json"
              required
              onChange={(event) => choose(event.target.files?.[0] ?? null)}
            />
          </label>
          <label className="field">
            Table
            <input
              value={name}
              required
              maxLength={MAX_LENGTH.NewImport.table}
              onChange={(event) => setName(event.target.value)}
            />
          </label>
          <p className="muted small">
            CSV with column names in the first line, a JSON array of objects, or one JSON object per line. A missing
            table is created. If one row fails, nothing is imported.
          </p>
          <ErrorText error={write.error} />
          <div className="row end">
            <button type="button" onClick={onClose}>
              Cancel
            </button>
            <button type="submit" className="primary" disabled={!file || write.isPending}>
              {write.isPending ? "Importing…" : "Import"}
            </button>
          </div>
        </Form>
      )}
    </Dialog>
  );
}

function Report({ done, onShow }: { done: Imported; onShow: () => void }) {
  return (
    <div className="stack" role="status">
      <p>
        <strong>{count(done.imported, "row")} imported</strong> into {done.created_table ? "the new table " : ""}
        <code>{done.table}</code>.
      </p>
      {done.ignored_columns.length > 0 && (
        <p className="muted">Skipped, because the server sets them: {done.ignored_columns.join(", ")}.</p>
      )}
      {Object.entries(done.renamed_columns).map(([from, to]) => (
        <p className="muted" key={from}>
          The column <code>{from}</code> is called <code>{to}</code> here: SQLite needs that name for its row id.
        </p>
      ))}
      <div className="row end">
        <button type="button" className="primary" onClick={onShow}>
          Show rows
        </button>
      </div>
    </div>
  );
}

function formatOf(file: string): "csv" | "json" | "jsonl" {
  const ending = file.split(".").at(-1)?.toLowerCase();
  return ending === "json" ? "json" : ending === "jsonl" || ending === "ndjson" ? "jsonl" : "csv";
}

/** Suggest a table name for a file. */
function tableOf(file: string): string {
  const plain = file
    .replace(/\.[^.]*$/, "")
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, "_")
    .replace(/^_+|_+$/g, "");
  return /^[0-9]/.test(plain) ? `t_${plain}` : plain;
}
