/** A run: what it was asked, what came of it, actions, figures, and how it came about. */

import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { call } from "../../api/client";
import * as queries from "../../api/queries";
import type { RunWithTexts } from "../../api/rest.generated";
import { Loading } from "../../components/frame/Page";
import { byWhom, canContinue, reasonOf } from "../../components/text/labels";
import { Markdown } from "../../components/text/Markdown";
import { Time } from "../../components/text/times";
import { StatusBadge } from "../../components/ui/Badge";
import { ErrorText } from "../../components/ui/ErrorText";
import { Icon } from "../../components/ui/Icon";
import { RunChanges } from "./RunChanges";
import { RunFacts } from "./RunFacts";
import { RunStory } from "./RunStory";
import "./RunSummary.css";

/** `output` is everything that the run did; without it, its answer is shown, and a link to the rest. */
export function RunSummary({ runId, output }: { runId: string; output?: ReactNode }) {
  const run = useQuery(queries.run(runId));
  const agents = useQuery(queries.agents).data;
  if (queries.problemOf(run)) return <ErrorText error={run.error} />;
  if (!run.data) return <Loading what="the run" />;
  const { data } = run;
  const agent = agents?.find((each) => each.id === data.agent_id);
  return (
    <div className="run-summary">
      <p className="run-origin">
        <StatusBadge run={data} /> {reasonOf(data) && <span className="muted">{reasonOf(data)}</span>}
        <span className="muted">
          {agent ? <Link href={`/ui/agents/${agent.id}/activity`}>{agent.name}</Link> : "An agent that was deleted"} ·{" "}
          {startedBy(data)} · <Time at={data.started_at ?? data.nominal_at} zone={agent?.zone} />
        </span>
      </p>
      <section aria-labelledby="run-brief">
        <h2 id="run-brief">What it was asked</h2>
        <Brief run={data} />
      </section>
      <section aria-labelledby="run-result">
        <h2 id="run-result">Result</h2>
        {data.error && <p className="ending is-bad">{data.error}</p>}
        {output ?? (data.answer ? <Markdown text={data.answer} /> : <p className="muted">No answer</p>)}
      </section>
      <RunActions run={data} isWhole={output !== undefined} />
      <section aria-labelledby="run-figures">
        <h2 id="run-figures">Figures</h2>
        <RunFacts run={data} zone={agent?.zone} />
      </section>
      {data.wake_id && <RunStory run={data} wakeId={data.wake_id} zone={agent?.zone} />}
      <RunChanges key={runId} run={data} zone={agent?.zone} />
    </div>
  );
}

function startedBy(run: RunWithTexts): string {
  const through = run.through ? ` ${run.through}` : "";
  if (run.trigger === "message") return `your message${through}`;
  const by = `scheduled ${byWhom(run.scheduled_by)}`;
  return run.trigger === "run_now" ? `${by}, started by hand${through}` : by + through;
}

function Brief({ run }: { run: RunWithTexts }) {
  if (!run.brief) return <p className="muted">Its text is gone: the session was deleted.</p>;
  return (
    <div className="run-brief" role="group" aria-label="The text it was given" tabIndex={0}>
      {run.trigger === "message" ? <p className="plain">{run.brief}</p> : <Markdown text={run.brief} />}
    </div>
  );
}

function RunActions({ run, isWhole }: { run: RunWithTexts; isWhole: boolean }) {
  const path = { run_id: run.id };
  const changes = [["runs"], ["sessions"], ["agenda"]];
  const again = queries.useAct(() => call("POST /runs/{run_id}/again", { path }), changes);
  const resume = queries.useAct(() => call("POST /runs/{run_id}/continue", { path }), changes);
  const stop = queries.useAct(() => call("POST /runs/{run_id}/stop", { path }), changes);
  const problem = [again, resume, stop].find((each) => each.isError)?.error;
  const isLive = run.status === "running" || run.status === "queued";
  const hasBrokenOff = ["failed", "stopped", "interrupted"].includes(run.status);
  return (
    <div className="stack">
      <div className="row wrap">
        {run.session_id && (
          <Link className="button" href={`/ui/sessions/${run.session_id}`}>
            Open the session
          </Link>
        )}
        {!isWhole && (
          <Link className="button" href={`/ui/runs/${run.id}`}>
            All steps
          </Link>
        )}
        {isLive && (
          <button type="button" onClick={() => stop.mutate(undefined)}>
            <Icon name="stop" size={14} />
            Stop
          </button>
        )}
        {hasBrokenOff && !canContinue(run.reason) && (
          <Link className="button" href={`/ui/agents/${run.agent_id}/configure#model`}>
            Choose another model
          </Link>
        )}
        {hasBrokenOff && canContinue(run.reason) && (
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
