/** The changes a run made to its agent's database, and how to undo them. */

import { useState } from "react";
import { call } from "../../api/client";
import { useWrite } from "../../api/database";
import type { RunDetail, Undone } from "../../api/rest.generated";
import { Confirm } from "../../components/ui/Dialog";
import { Changes, useChanges } from "../agent/database/Changes";
import "./RunChanges.css";

export function RunChanges({ run, zone }: { run: RunDetail; zone: string | undefined }) {
  const which = { run_id: run.id };
  const entries = useChanges(run.agent_id, which).data?.pages[0]?.changes ?? [];
  const [isAsking, setAsking] = useState(false);
  const undo = useWrite(
    () => call("POST /runs/{run_id}/undo-data", { path: { run_id: run.id } }),
    () => setAsking(false),
  );
  const isLive = run.status === "running" || run.status === "queued";
  return (
    <section className="run-changes" aria-labelledby="run-changes">
      <div className="row">
        <h2 id="run-changes">What it changed</h2>
        {entries.some((entry) => entry.row_id !== null) && !isLive && (
          <button type="button" className="small push" onClick={() => setAsking(true)}>
            Undo this run's data
          </button>
        )}
      </div>
      {undo.data && <UndoReport done={undo.data} />}
      <Changes agentId={run.agent_id} zone={zone} which={which} nothing="Nothing in its database." />
      {isAsking && (
        <Confirm
          title="Undo this run's data?"
          text="Rows it added are deleted, and rows it changed get their old values back. Rows that were changed since are left alone and listed. The changelog records this, and deleted rows can be restored."
          action="Undo"
          error={undo.error}
          onConfirm={() => undo.mutate(undefined)}
          onClose={() => setAsking(false)}
        />
      )}
    </section>
  );
}

function UndoReport({ done }: { done: Undone }) {
  return (
    <div className="undo-report" role="status">
      <p>
        <strong>
          {done.undone === 1 ? "1 row was put back." : `${done.undone.toLocaleString()} rows were put back.`}
        </strong>
        {done.left_count > 0 && ` ${done.left_count.toLocaleString()} left alone:`}
      </p>
      <ul>
        {done.left.map((each, number) => (
          <li key={number}>
            {each.table ?? "The schema"}
            {each.row_id !== null && each.row_id !== undefined && ` #${each.row_id}`}: {each.why}
          </li>
        ))}
      </ul>
    </div>
  );
}
