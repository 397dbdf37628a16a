/** The facts of a run, and actions on it. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { call } from "../api/client";
import * as queries from "../api/queries";
import type { RunDetail } from "../api/rest.generated";
import { StatusBadge } from "../components/Badge";
import { ErrorText } from "../components/ErrorText";
import { Fact, Facts } from "../components/Facts";
import { Icon } from "../components/Icon";
import { byWhom, count, kindText, reasonOf, reasonText } from "../components/labels";
import { Loading } from "../components/Page";
import { duration, Time, took, useNow } from "../components/times";
import { RunChanges } from "./RunChanges";
import "./RunSummary.css";

interface Props {
  runId: string;
  zone: string | undefined;
  hasOutput?: boolean; // the output is on the same page
}

export function RunSummary({ runId, zone, hasOutput = false }: Props) {
  const run = useQuery(queries.run(runId));
  if (run.isError) return <ErrorText error={run.error} />;
  if (!run.data) return <Loading what="the run" />;
  return (
    <div className="stack">
      <RunFacts run={run.data} zone={zone} />
      {run.data.error && <p className="ending is-bad">{run.data.error}</p>}
      <RunActions run={run.data} hasOutput={hasOutput} />
      {run.data.wake_id && <Why wakeId={run.data.wake_id} />}
      <RunChanges key={runId} run={run.data} zone={zone} />
    </div>
  );
}

function RunFacts({ run, zone }: { run: RunDetail; zone: string | undefined }) {
  const { usage } = run;
  const wait = run.started_at ? (Date.parse(run.started_at) - Date.parse(run.nominal_at)) / 1000 : null;
  return (
    <Facts>
      <Fact name="Status">
        <StatusBadge run={run} /> {reasonOf(run) && <span className="muted">{reasonOf(run)}</span>}
      </Fact>
      <Fact name="Started by">
        {run.trigger === "message"
          ? "your message"
          : `${kindText(run.kind)}, scheduled ${byWhom(run.scheduled_by)}${run.trigger === "run_now" ? ", started by hand" : ""}`}
      </Fact>
      {run.trigger === "wake" && (
        <Fact name="Planned for">
          <Time at={run.nominal_at} zone={zone} />
          {run.covers > 1 && ` and ${count(run.covers - 1, "more time")}`}
        </Fact>
      )}
      {run.started_at && (
        <Fact name="Started">
          <Time at={run.started_at} zone={zone} />
          {run.trigger === "wake" && wait !== null && wait >= 1 && <span className="muted"> {took(wait)} late</span>}
        </Fact>
      )}
      {run.started_at && run.finished_at && (
        <Fact name="Took">{took((Date.parse(run.finished_at) - Date.parse(run.started_at)) / 1000)}</Fact>
      )}
      {run.status === "running" && run.started_at && <TimeLeft agentId={run.agent_id} since={run.started_at} />}
      {run.attempt > 1 && <Fact name="Attempt">{run.attempt}</Fact>}
      {usage && (
        <>
          <Fact name="Model">{usage.model}</Fact>
          <Fact name="Tokens">
            {usage.input_tokens.toLocaleString()} in, {usage.output_tokens.toLocaleString()} out
          </Fact>
          <Fact name="Cost">{usage.cost === null ? "unknown price" : `$${usage.cost.toFixed(4)}`}</Fact>
          <Fact name="Calls">
            {count(usage.model_calls, "model call")}, {count(usage.tool_calls, "tool call")}
          </Fact>
        </>
      )}
    </Facts>
  );
}

function TimeLeft({ agentId, since }: { agentId: string; since: string }) {
  const limit = useQuery(queries.agents).data?.find((each) => each.id === agentId)?.run_limit_seconds;
  const now = useNow(1);
  if (limit === undefined) return null;
  return <Fact name="Time left">{duration(Math.max(0, limit - (now - Date.parse(since)) / 1000))}</Fact>;
}

function RunActions({ run, hasOutput }: { run: RunDetail; hasOutput: boolean }) {
  const path = { run_id: run.id };
  const changes = [["runs"], ["sessions"], ["agenda"]];
  const again = queries.useAct(() => call("POST /runs/{run_id}/again", { path }), changes);
  const resume = queries.useAct(() => call("POST /runs/{run_id}/continue", { path }), changes);
  const stop = queries.useAct(() => call("POST /runs/{run_id}/stop", { path }), changes);
  const problem = [again, resume, stop].find((each) => each.isError)?.error;
  const isLive = run.status === "running" || run.status === "queued";
  return (
    <div className="stack">
      <div className="row">
        {run.session_id && (
          <Link className="button" href={`/ui/sessions/${run.session_id}`}>
            Open the session
          </Link>
        )}
        {!hasOutput && (
          <Link className="button" href={`/ui/runs/${run.id}`}>
            Output
          </Link>
        )}
        {isLive && (
          <button type="button" onClick={() => stop.mutate(undefined)}>
            <Icon name="stop" size={14} />
            Stop
          </button>
        )}
        {["failed", "stopped", "interrupted"].includes(run.status) && (
          <button type="button" onClick={() => resume.mutate(undefined)}>
            <Icon name="play" size={14} />
            Continue
          </button>
        )}
        {run.wake_id && !isLive && (
          <button type="button" disabled={again.isPending} onClick={() => again.mutate(undefined)}>
            Run again
          </button>
        )}
      </div>
      {again.data && (
        <p role="status">
          Running again: <Link href={`/ui/runs/${(again.data as { id: string }).id}`}>open the new run</Link>
        </p>
      )}
      <ErrorText error={problem} />
    </div>
  );
}

/** The time that was requested, and why the run was scheduled for another. */
function RequestedTime({ detail }: { detail: Record<string, unknown> }) {
  if (typeof detail.requested !== "string" || typeof detail.final !== "string") return null;
  const moves = (detail.moved_by as string[]).map(reasonText).join(", ");
  return (
    <span className="small wish">
      {" "}
      requested “{detail.requested}”{typeof detail.zone === "string" && ` (${detail.zone})`}, scheduled for{" "}
      <Time at={detail.final} />
      {moves && <span className="badge wait">moved: {moves}</span>}
    </span>
  );
}

function Why({ wakeId }: { wakeId: string }) {
  const why = useQuery(queries.why(wakeId)).data;
  if (!why?.length) return null;
  return (
    <details className="why">
      <summary>Why it ran when it did</summary>
      <ol>
        {why.map((decision, index) => (
          <li key={index}>
            <Time at={decision.at} /> <strong>{reasonText(decision.code)}</strong>{" "}
            <span className="muted small">
              for <Time at={decision.nominal_at} />
            </span>
            <RequestedTime detail={decision.detail} />
          </li>
        ))}
      </ol>
    </details>
  );
}
