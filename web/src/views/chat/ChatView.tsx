/** A conversation, live. */

import { useQuery } from "@tanstack/react-query";
import { startTransition, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useLocation, useSearchParams } from "wouter";
import { call, explain, Refused } from "../../api/client";
import * as queries from "../../api/queries";
import { tellRefusal } from "../../api/refusals";
import type { MessageShape, RunShape, SessionDetail } from "../../api/rest.generated";
import { Icon } from "../../components/Icon";
import { Failure, Loading, PageHeader } from "../../components/Page";
import { WakeBanner } from "../../components/WakeBanner";
import { ZoneOffer } from "../../components/zone";
import { Composer, type Outgoing } from "./Composer";
import { SessionMenu } from "./SessionMenu";
import { useSessionStream } from "./stream";
import { TurnView } from "./TurnView";
import { type Turn, toTurns } from "./transcript";

export function ChatView({ sessionId }: { sessionId: string }) {
  const loaded = useQuery(queries.session(sessionId));
  if (loaded.isError && loaded.error instanceof Refused && loaded.error.status === 404) {
    return <Failure title="This session is not there" text="It was deleted, or it belongs to someone else." />;
  }
  if (loaded.isError)
    return (
      <Failure title="The session cannot be shown" text={explain(loaded.error)} retry={() => void loaded.refetch()} />
    );
  if (!loaded.data) return <Loading what="the session" />;
  return <Chat key={sessionId} session={loaded.data} />;
}

interface Pending {
  runId: string | null; // null: on its way
  message: MessageShape;
  after: number; // how many messages were saved when it was sent
}

function Chat({ session }: { session: SessionDetail }) {
  const stream = useSessionStream(session.id);
  const agents = useQuery(queries.agents).data;
  const agent = agents?.find((each) => each.id === session.agent_id);
  const runs = useQuery(queries.runs({ session_id: session.id })).data;
  const [pending, setPending] = useState<Pending | null>(null);
  const { live } = stream;

  const spoken = [...stream.settling, ...(live ? [live] : [])];
  const spokenIds = spoken.map((each) => each.runId).join(" ");
  const turns = useMemo(
    () => assemble(session.messages, runs, pending, spokenIds),
    [session.messages, runs, pending, spokenIds],
  );
  const isRunning = live !== null;
  const isWaiting = pending !== null && !isRunning && !isOver(pending, runs, stream.ended);
  const asked = turns.findLast((turn) => turn.runId === live?.runId)?.asked;
  const isHeadless = isRunning && pending?.runId !== live.runId && (!asked || asked.is_recall || asked.source !== null);

  const send = useCallback(
    async (outgoing: Outgoing) => {
      const message = pendingMessage(outgoing);
      const after = session.messages.length;
      setPending({ runId: null, message, after });
      try {
        const taken = await call("POST /sessions/{session_id}/messages", {
          path: { session_id: session.id },
          body: {
            content: outgoing.content,
            images: outgoing.images.length ? outgoing.images : null,
            files: outgoing.files.length ? outgoing.files : null,
          },
        });
        setPending({ runId: taken.run_id, message, after });
      } catch (error) {
        setPending(null);
        throw error;
      }
    },
    [session.id, session.messages.length],
  );

  const stop = () =>
    void call("POST /sessions/{session_id}/stop", { path: { session_id: session.id } }).catch(tellRefusal);
  const title = session.title || "New session";
  return (
    <div className="chat">
      <PageHeader title={title}>
        <SessionMenu session={session} agent={agent} />
      </PageHeader>
      {agent && <ZoneOffer agent={agent} />}
      {agent && <WakeBanner agent={agent} sessionId={session.id} />}
      <Transcript isStill={stream.isReplaying} turns={turns}>
        {(shown) =>
          shown.map((turn) => (
            <TurnView
              key={turn.key}
              turn={turn}
              sessionId={session.id}
              live={spoken.findLast((each) => each.runId === turn.runId) ?? null}
              run={runs?.find((run) => run.id === turn.runId)}
              zone={agent?.zone}
              isLast={turn === turns.at(-1)}
            />
          ))
        }
      </Transcript>
      {stream.link === "gone" ? (
        <p className="note-line">This session was deleted.</p>
      ) : (
        <Composer
          draftKey={session.id}
          sessionId={session.id}
          beginSession={async () => session.id}
          isBusy={isRunning || isWaiting}
          isHeadless={isHeadless}
          endings={stream.ended.length}
          onSend={send}
          onStop={isRunning || isWaiting ? stop : null}
          placeholder={
            isHeadless
              ? "A woken run is at work; what you write is sent when it ends"
              : `Message ${agent?.name ?? "the agent"}`
          }
        />
      )}
    </div>
  );
}

/** Put together what is saved, the message that is on its way, and the run that is under way. */
function assemble(
  messages: MessageShape[],
  runs: RunShape[] | undefined,
  pending: Pending | null,
  spokenIds: string,
): Turn[] {
  const saved =
    pending &&
    messages
      .slice(pending.after)
      .find(
        (message) => message.role === "user" && message.run_id === null && message.content === pending.message.content,
      );
  // A message and the run that answers it are made in the same instant.
  const runOf = (message: MessageShape) =>
    (message === saved ? pending?.runId : null) ??
    runs?.find((run) => run.trigger === "message" && run.queued_at === message.created_at)?.id ??
    null;
  let turns = toTurns(messages, runOf);
  if (pending && !saved)
    turns.push({ ...EMPTY, key: `${pending.runId ?? "pending"}:0`, runId: pending.runId, asked: pending.message });
  for (const runId of spokenIds.split(" ").filter(Boolean)) turns = withRun(turns, runId);
  return turns;
}

/** Make sure of a turn for a run: the message that has no answer yet is its own, unless there is a better one. */
function withRun(turns: Turn[], runId: string): Turn[] {
  if (turns.some((turn) => turn.runId === runId)) return turns;
  const last = turns.at(-1);
  if (last?.asked && last.runId === null) return turns.with(-1, { ...last, key: `${runId}:0`, runId });
  return [...turns, { ...EMPTY, key: `${runId}:0`, runId }];
}

const EMPTY: Turn = { key: "", runId: null, asked: null, items: [], isCutOff: false };

function isOver({ runId }: Pending, runs: RunShape[] | undefined, ended: readonly string[]): boolean {
  if (runId === null) return false;
  return ended.includes(runId) || (runs ?? []).some((run) => run.id === runId && run.finished_at !== null);
}

function pendingMessage({ content, images, files }: Outgoing): MessageShape {
  return {
    id: "pending",
    index: -1,
    role: "user",
    content,
    created_at: new Date().toISOString(),
    run_id: null,
    is_recall: false,
    source: null,
    wake_id: null,
    label: null,
    images: images.length ? images.map((src) => ({ src })) : null,
    files: files.length ? files.map(({ name, path }) => ({ name, path })) : null,
  };
}

const FIRST_SHOWN = 16;
const MORE_SHOWN = 4; // as many as fit into a frame

interface TranscriptProps {
  turns: Turn[];
  isStill: boolean;
  children: (shown: Turn[]) => React.ReactNode;
}

/** Shows the latest turns, earlier ones as someone scrolls up; follows the end unless someone has scrolled away. */
function Transcript({ turns, isStill, children }: TranscriptProps) {
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const top = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const lastTop = useRef(0);
  const [isAway, setAway] = useState(false);
  const [count, setCount] = useState(FIRST_SHOWN);
  const height = useRef(0); // of everything shown, as it was last drawn

  const toEnd = useCallback((smooth = false) => {
    const element = box.current;
    element?.scrollTo({ top: element.scrollHeight, behavior: smooth ? "smooth" : "instant" });
  }, []);

  useLayoutEffect(() => {
    toEnd();
    const watcher = new ResizeObserver(() => {
      height.current = box.current?.scrollHeight ?? 0;
      if (follows.current) toEnd();
    });
    if (content.current) watcher.observe(content.current);
    if (box.current) watcher.observe(box.current);
    return () => watcher.disconnect();
  }, [toEnd]);

  // A message of one's own brings its reader back to the end.
  const isMine = turns.at(-1)?.asked?.id === "pending";
  useEffect(() => {
    if (isMine) {
      follows.current = true;
      setAway(false);
      toEnd();
    }
  }, [isMine, toEnd]);

  useEffect(() => {
    const mark = top.current;
    if (!mark || count >= turns.length) return;
    const watcher = new IntersectionObserver(
      ([entry]) => {
        if (!entry?.isIntersecting) return;
        startTransition(() => setCount((before) => before + MORE_SHOWN)); // scrolling goes first
      },
      { root: box.current, rootMargin: "2400px 0px 0px" },
    );
    watcher.observe(mark);
    return () => watcher.disconnect();
  }, [count, turns.length]);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element || count === FIRST_SHOWN || follows.current) return;
    element.scrollTop += element.scrollHeight - height.current; // what came above moves nothing that is in sight
  }, [count]);

  const onScroll = () => {
    const element = box.current;
    if (!element) return;
    // Growing text moves the end away too; only who scrolls up means to stay where they are.
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 60;
    if (isAtEnd) follows.current = true;
    else if (element.scrollTop < lastTop.current) follows.current = false;
    lastTop.current = element.scrollTop;
    setAway(!isAtEnd && !follows.current);
  };

  return (
    <div className="transcript-frame">
      <div
        ref={box}
        className={isStill ? "transcript is-still" : "transcript"}
        onScroll={onScroll}
        tabIndex={0}
        role="log"
        aria-label="Conversation"
        aria-live="off"
      >
        <div ref={content} className="transcript-content">
          {turns.length === 0 && <EmptyChat />}
          {count < turns.length && (
            <div ref={top} className="note-line">
              Earlier messages
            </div>
          )}
          {children(turns.slice(-count))}
        </div>
      </div>
      {isAway && (
        <button type="button" className="to-end" onClick={() => toEnd(true)} aria-label="To the end">
          <Icon name="down2" size={16} />
        </button>
      )}
    </div>
  );
}

function EmptyChat() {
  return (
    <div className="empty">
      <p>Say something to begin. “What can you do?” is a good start.</p>
    </div>
  );
}

/** Begin a session: one message makes it. */
export function StartView() {
  const agents = useQuery(queries.agents).data ?? [];
  const [, navigate] = useLocation();
  const [params, setParams] = useSearchParams();
  const agent = agents.find((each) => each.id === params.get("agent")) ?? agents[0];
  const made = useRef<{ agentId: string | undefined; id: Promise<string> } | null>(null);
  const begin = () => {
    if (!made.current || made.current.agentId !== agent?.id) {
      const id = call("POST /sessions", { body: { agent_id: agent?.id ?? null, title: "" } }).then(
        (session) => session.id,
      );
      made.current = { agentId: agent?.id, id };
    }
    return made.current.id;
  };
  const send = async (outgoing: Outgoing, sessionId: string) => {
    const { content, images, files } = outgoing;
    await call("POST /sessions/{session_id}/messages", {
      path: { session_id: sessionId },
      body: { content, images: images.length ? images : null, files: files.length ? files : null },
    });
    void queries.queryClient.invalidateQueries({ queryKey: ["sessions"] });
    navigate(`/ui/sessions/${sessionId}`);
  };
  return (
    <div className="start">
      <PageHeader title="New session" />
      <div className="start-body">
        <div className="start-words">
          <h2>What shall {agent?.name ?? "the agent"} do?</h2>
          <p className="muted">Now, or later: it can set its own alarm, and you can watch it wake.</p>
        </div>
        <Composer
          draftKey="start"
          sessionId={null}
          beginSession={begin}
          isBusy={false}
          isHeadless={false}
          endings={0}
          onSend={send}
          onStop={null}
          placeholder="Message"
        >
          {agents.length > 1 && agent && (
            <label className="choose-agent">
              <span className="hidden">Agent</span>
              <select
                value={agent.id}
                onChange={(event) => setParams({ agent: event.target.value }, { replace: true })}
              >
                {agents.map((each) => (
                  <option key={each.id} value={each.id}>
                    {each.name}
                  </option>
                ))}
              </select>
            </label>
          )}
        </Composer>
        <Suggestions draft={(text) => void begin().then((id) => send({ content: text, images: [], files: [] }, id))} />
      </div>
    </div>
  );
}

const SUGGESTIONS = ["What can you do?", "Write buy milk to notes.txt", "In 10 seconds check notes.txt"];

function Suggestions({ draft }: { draft: (text: string) => void }) {
  return (
    <ul className="suggestions" aria-label="Examples">
      {SUGGESTIONS.map((text) => (
        <li key={text}>
          <button type="button" className="quiet" onClick={() => draft(text)}>
            {text}
          </button>
        </li>
      ))}
    </ul>
  );
}
