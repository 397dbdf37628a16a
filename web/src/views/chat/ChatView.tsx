/** A conversation, live. */

import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef } from "react";
import { ApiError, call, explain } from "../../api/client";
import { showPageError } from "../../api/pageError";
import * as queries from "../../api/queries";
import type { SessionDetail } from "../../api/rest.generated";
import { Failure, Loading, PageHeader } from "../../components/frame/Page";
import { ZoneOffer } from "../../components/text/zone";
import { IdleControls } from "../../components/wakes/IdleControls";
import { WakeBanner } from "../../components/wakes/WakeBanner";
import { Composer, type ComposerHandle } from "./composer/Composer";
import { SessionMenu } from "./SessionMenu";
import { hasEnded, usePendingMessage } from "./sending";
import { type LiveRun, useSessionStream } from "./stream";
import { Transcript } from "./transcript/Transcript";
import { TurnView } from "./transcript/TurnView";
import { assembleTurns } from "./transcript/turns";
import { useWantedMessage } from "./useWantedMessage";
import "./ChatView.css";

export function ChatView({ sessionId }: { sessionId: string }) {
  const loaded = useQuery(queries.session(sessionId));
  if (loaded.isError && loaded.error instanceof ApiError && loaded.error.status === 404) {
    return <Failure title="Session not found" text="It was deleted, or it belongs to someone else." />;
  }
  if (queries.problemOf(loaded))
    return (
      <Failure
        title="The session could not be loaded"
        text={explain(loaded.error)}
        retry={() => void loaded.refetch()}
      />
    );
  if (!loaded.data) return <Loading what="the session" />;
  return <Chat key={sessionId} session={loaded.data} />;
}

function Chat({ session }: { session: SessionDetail }) {
  const { wanted, forget } = useWantedMessage();
  const agent = useQuery(queries.agents).data?.find((each) => each.id === session.agent_id);
  const chat = useChat(session);
  const composer = useRef<ComposerHandle>(null);
  const actions = useMemo(
    () => ({ quote: (text: string) => composer.current?.quote(text), retry: chat.retry }),
    [chat.retry],
  );
  return (
    <div className="chat">
      <PageHeader title={session.title || "New session"}>
        {agent && <IdleControls agent={agent} sessionId={session.id} />}
        <SessionMenu session={session} agent={agent} />
      </PageHeader>
      {agent && <ZoneOffer agent={agent} />}
      {agent && <WakeBanner agent={agent} sessionId={session.id} />}
      <Transcript isReplaying={chat.isReplaying} turns={chat.turns} wanted={wanted} onShown={forget}>
        {(turn) => (
          <TurnView
            key={turn.key}
            turn={turn}
            session={session}
            actions={actions}
            canRetry={turn === chat.turns.at(-1) && !chat.isBusy && !chat.isDeleted}
            live={chat.streaming.findLast((each) => each.runId === turn.runId) ?? null}
            run={chat.runs?.find((run) => run.id === turn.runId)}
            earlierRuns={turn.versions.length > 0 ? chat.runs : undefined}
            zone={agent?.zone}
            isLast={turn === chat.turns.at(-1)}
          />
        )}
      </Transcript>
      {chat.isDeleted ? (
        <p className="note-line">This session was deleted.</p>
      ) : (
        <Composer
          ref={composer}
          draftKey={session.id}
          getSessionId={async () => session.id}
          isBusy={chat.isBusy}
          isWoken={chat.isWoken}
          endedCount={chat.endedCount}
          onSend={chat.send}
          onStop={chat.isBusy ? () => stop(session.id) : null}
          placeholder={
            chat.isWoken
              ? "A scheduled run is in progress. Your message will be sent when it's done."
              : `Message ${agent?.name ?? "the agent"}`
          }
        />
      )}
    </div>
  );
}

/** Put together what is saved, what is being sent and what is streaming. */
function useChat(session: SessionDetail) {
  const { live, settling, opening, ended, isReplaying, link } = useSessionStream(session.id);
  const runs = useQuery(queries.runs({ session_id: session.id })).data;
  const { pending, send, retry } = usePendingMessage(session);

  // Frames may overtake the response with the message that they answer. Until it is there it is not known whether the
  // run answers a new message or replaces the last answer, which would be shown beside it.
  const isOpen = ({ runId }: LiveRun) =>
    !opening.includes(runId) || runId === pending?.runId || session.messages.some((saved) => saved.run_id === runId);
  const streaming = (live ? [...settling, live] : settling).filter(isOpen);
  const streamingIds = streaming.map((run) => run.runId).join(" ");
  const turns = useMemo(
    () => assembleTurns(session.messages, pending, streamingIds.split(" ").filter(Boolean)),
    [session.messages, pending, streamingIds],
  );
  const isWaiting = pending !== null && live === null && !hasEnded(pending, runs, ended);
  const asked = turns.findLast((turn) => turn.runId === live?.runId)?.asked;
  const isWoken =
    live !== null && pending?.runId !== live.runId && (!asked || asked.is_recall || asked.source !== null);
  return {
    turns,
    runs,
    streaming,
    isReplaying,
    isDeleted: link === "gone",
    isBusy: live !== null || isWaiting,
    isWoken,
    endedCount: ended.length,
    send,
    retry,
  };
}

function stop(sessionId: string): void {
  void call("POST /sessions/{session_id}/stop", { path: { session_id: sessionId } }).catch(showPageError);
}
