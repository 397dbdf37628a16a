/** One run: its facts and its output. */

import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { call, explain } from "../api/client";
import type { SessionFrame } from "../api/frames.generated";
import * as queries from "../api/queries";
import { kindText } from "../components/labels";
import { Failure, Loading, PageHeader } from "../components/Page";
import { addFrame, settleAll } from "./chat/frames";
import { Items } from "./chat/Items";
import type { Item } from "./chat/items";
import { toTurns } from "./chat/turns";
import { RunSummary } from "./RunSummary";
import "./RunView.css";

export default function RunView({ runId }: { runId: string }) {
  const run = useQuery(queries.run(runId));
  const agent = useQuery(queries.agents).data?.find((each) => each.id === run.data?.agent_id);
  if (run.isError) return <Failure title="The run could not be loaded" text={explain(run.error)} />;
  if (!run.data) return <Loading what="the run" />;
  return (
    <div className="page">
      <PageHeader title={`${kindText(run.data.kind)}${agent ? ` of ${agent.name}` : ""}`} />
      <div className="page-body run-page">
        <RunSummary runId={runId} zone={agent?.zone} hasOutput />
        <section aria-labelledby="output">
          <h2 id="output">Output</h2>
          <RunOutput runId={runId} sessionId={run.data.session_id} isLive={run.data.status === "running"} />
        </section>
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
    const frames = (events.data?.events ?? []) as unknown as SessionFrame[];
    const said = frames.reduce<Item[]>(
      (before, frame) => (frame.type === "stream_start" ? before : addFrame(before, frame, null)),
      [],
    );
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
