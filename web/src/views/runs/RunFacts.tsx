/** The figures of a run: times, tokens, cost. */

import { useQuery } from "@tanstack/react-query";
import * as queries from "../../api/queries";
import type { RunDetail } from "../../api/rest.generated";
import { count } from "../../components/text/labels";
import { duration, Time, took, useNow } from "../../components/text/times";
import { Fact, Facts } from "../../components/ui/Facts";

export function RunFacts({ run, zone }: { run: RunDetail; zone: string | undefined }) {
  const { usage } = run;
  const isShared = useQuery(queries.about).data?.store === "postgresql";
  const wait = run.started_at ? (Date.parse(run.started_at) - Date.parse(run.nominal_at)) / 1000 : null;
  return (
    <Facts>
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
      {run.has_read && <Fact name="Has read">{run.has_read}</Fact>}
      {isShared && run.node && <Fact name="Node">{run.node}</Fact>}
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
