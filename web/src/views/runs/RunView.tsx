/** One run: what it was asked, its output, then its figures. */

import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { call, explain } from "../../api/client";
import type { SessionFrame } from "../../api/frames.generated";
import * as queries from "../../api/queries";
import { Failure, Loading, PageHeader } from "../../components/frame/Page";
import { startText } from "../../components/text/labels";
import { settleAll } from "../chat/transcript/frames";
import { Items } from "../chat/transcript/Items";
import { toTurns } from "../chat/transcript/turns";
import { RunSummary } from "./RunSummary";
import { itemsOf } from "./runItems";
import "./RunView.css";

export default function RunView({ runId }: { runId: string }) {
  const run = useQuery(queries.run(runId));
  if (queries.problemOf(run)) return <Failure title="The run could not be loaded" text={explain(run.error)} />;
  if (!run.data) return <Loading what="the run" />;
  const { about, session_id, status } = run.data;
  return (
    <div className="page">
      <PageHeader title={about || startText(run.data)} />
      <div className="page-body">
        <div className="run-page">
          <RunSummary
            runId={runId}
            output={<RunOutput runId={runId} sessionId={session_id} isLive={status === "running"} />}
          />
        </div>
      </div>
    </div>
  );
}

function RunOutput({ runId, sessionId, isLive }: { runId: string; sessionId: string | null; isLive: boolean }) {
  const events = useQuery({
    queryKey: ["runs", runId, "events"],
    queryFn: () => call("GET /runs/{run_id}/events", { path: { run_id: runId } }),
    refetchInterval: isLive ? 1000 : false,
  });
  const hasFrames = (events.data?.events.length ?? 0) > 1;
  const saved = useQuery({
    ...queries.session(sessionId ?? ""),
    enabled: sessionId !== null && events.isSuccess && !hasFrames,
  }).data;
  const items = useMemo(() => {
    if (!hasFrames)
      return toTurns(saved?.messages ?? [])
        .filter((turn) => turn.runId === runId)
        .flatMap((turn) => turn.items);
    const said = itemsOf((events.data?.events ?? []) as unknown as SessionFrame[]);
    return isLive ? said : settleAll(said);
  }, [events.data, saved, hasFrames, isLive, runId]);
  if (events.isPending) return <Loading what="the output" />;
  if (items.length === 0) return <p className="muted">No output</p>;
  return (
    <div className="reply">
      <Items items={items} />
    </div>
  );
}
