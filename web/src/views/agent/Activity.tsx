/** An agent's runs on the left, the selected one on the right. */

import { useQuery } from "@tanstack/react-query";
import { useLocation, useSearchParams } from "wouter";
import * as queries from "../../api/queries";
import type { AgentShape, RunDetail } from "../../api/rest.generated";
import { Empty, Loading } from "../../components/frame/Page";
import { reasonOf, startText } from "../../components/text/labels";
import { Time } from "../../components/text/times";
import { StatusBadge } from "../../components/ui/Badge";
import { ErrorText } from "../../components/ui/ErrorText";
import { RunSummary } from "../runs/RunSummary";
import "./Activity.css";

export function Activity({ agent }: { agent: AgentShape }) {
  const runs = useQuery(queries.runs({ agent_id: agent.id }));
  const [params, setParams] = useSearchParams();
  const [, navigate] = useLocation();
  // On a phone there is no room beside the list, so a run has the whole screen.
  const choose = (id: string) =>
    matchMedia("(max-width: 800px)").matches ? navigate(`/ui/runs/${id}`) : setParams({ run: id }, { replace: true });
  if (queries.problemOf(runs)) return <ErrorText error={runs.error} />;
  if (!runs.data) return <Loading what="runs" />;
  if (runs.data.length === 0) {
    return (
      <Empty icon="clock" title="No runs yet">
        <p>Send it a message or schedule a run. Every run is recorded here, including skipped ones.</p>
      </Empty>
    );
  }
  const chosen = runs.data.find((run) => run.id === params.get("run")) ?? runs.data[0];
  return (
    <div className="split">
      <ul className="run-list" aria-label="Runs">
        {runs.data.map((run) => (
          <li key={run.id}>
            <button type="button" className="run-row" aria-pressed={run === chosen} onClick={() => choose(run.id)}>
              <RunRow run={run} zone={agent.zone} />
            </button>
          </li>
        ))}
      </ul>
      {chosen && (
        <div className="split-right">
          <RunSummary runId={chosen.id} />
        </div>
      )}
    </div>
  );
}

function RunRow({ run, zone }: { run: RunDetail; zone: string }) {
  return (
    <>
      <span className="run-row-top">
        <strong className="run-about">{run.about || startText(run)}</strong>
        <StatusBadge run={run} />
      </span>
      <span className="muted small">
        {startText(run)} · <Time at={run.started_at ?? run.queued_at} zone={zone} />
        {run.covers > 1 && ` · ${run.covers} times`}
        {reasonOf(run) && ` · ${reasonOf(run)}`}
      </span>
    </>
  );
}
