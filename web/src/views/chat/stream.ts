/** The live state of a session: the frames of its socket, until the saved transcript has them. */

import { useEffect, useState, useSyncExternalStore } from "react";
import type { ScheduleUpdate, SessionFrame } from "../../api/frames.generated";
import { queryClient, session as sessionQuery } from "../../api/queries";
import type { SessionDetail } from "../../api/rest.generated";
import { type LinkState, LiveSocket } from "../../api/socket";
import { staleQueries } from "../../api/stale";
import { addFrame, settleAll } from "./transcript/frames";
import type { Item } from "./transcript/items";
import { savedPart, toTurns } from "./transcript/turns";

export interface LiveRun {
  runId: string;
  items: Item[];
  status: "running" | "done" | "stopped" | "failed";
  error: { message: string; code: string } | null;
}

export interface StreamState {
  link: LinkState;
  live: LiveRun | null; // the run in progress
  settling: readonly LiveRun[]; // ended runs, until the saved transcript is reloaded
  opening: readonly string[]; // runs whose message is being loaded: a run may replace the turn before it
  isReplaying: boolean; // the frames are from before the connection: no animation
  ended: readonly string[]; // the runs that have ended since the page was opened
}

type Numbered = (SessionFrame | ScheduleUpdate) & { seq?: number | null };

const INITIAL: StreamState = {
  link: "connecting",
  live: null,
  settling: [],
  opening: [],
  isReplaying: false,
  ended: [],
};

const MIN_RENDER_GAP_MS = 24; // renders at every second frame of most screens

export class SessionStream {
  private state: StreamState = INITIAL;
  private shown = this.state;
  private readonly listeners = new Set<() => void>();
  private readonly socket: LiveSocket<Numbered>;
  private frameRequest = 0;
  private renderedAt = 0;

  constructor(private readonly sessionId: string) {
    this.socket = new LiveSocket<Numbered>(`/ws/sessions/${encodeURIComponent(sessionId)}`, {
      onFrame: (frame) => this.receive(frame),
      onState: (link) => this.change({ link }),
    });
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly snapshot = (): StreamState => this.shown;

  close(): void {
    cancelAnimationFrame(this.frameRequest);
    this.socket.close();
  }

  /** Render changes together, at most in every second animation frame: text arrives faster than that. */
  private change(changed: Partial<StreamState>): void {
    this.state = { ...this.state, ...changed };
    if (document.visibilityState === "hidden")
      this.render(); // a hidden page gets no animation frames, and may have a queued message to send
    else this.frameRequest ||= requestAnimationFrame(this.renderInTime);
  }

  private readonly renderInTime = (now: number): void => {
    const isEarly = now - this.renderedAt < MIN_RENDER_GAP_MS;
    this.frameRequest = isEarly ? requestAnimationFrame(this.renderInTime) : 0;
    if (isEarly) return;
    this.renderedAt = now;
    this.render();
  };

  private render(): void {
    this.shown = this.state;
    for (const listener of this.listeners) listener();
  }

  private receive(frame: Numbered): void {
    switch (frame.type) {
      case "session_sync":
        void this.reload();
        return;
      case "replay_start":
        // The replay starts with the run's first frame, so its saved items are dropped.
        this.change({ isReplaying: true, live: this.state.live && { ...this.state.live, items: [] } });
        return;
      case "replay_end":
        this.change({ isReplaying: false });
        return;
      case "heartbeat":
        return;
      case "recall_update":
      case "schedule_update":
        for (const name of staleQueries(frame)) void queryClient.invalidateQueries({ queryKey: [name] });
        return;
      case "stream_start":
        this.begin(frame.run_id ?? "");
        return;
      case "stream_end":
        this.end("done");
        return;
      case "stream_stopped":
        this.end("stopped");
        return;
      case "error":
        if (typeof frame.seq === "number") this.end("failed", { message: frame.message, code: frame.code });
        return;
      default:
        this.add(frame);
    }
  }

  private begin(runId: string): void {
    const { live, settling } = this.state;
    const cutOff = live?.runId === runId ? live.items : null; // by a crash: frames since its last saved step are void
    // A continued run starts with the items it had before, from the stream if they are still there.
    const before = settling.findLast((run) => run.runId === runId)?.items;
    const known = queryClient.getQueryData(sessionQuery(this.sessionId).queryKey);
    this.change({
      live: { runId, items: cutOff ? [] : (before ?? savedOf(runId, known)), status: "running", error: null },
      opening: [...this.state.opening, runId],
    });
    void queryClient.invalidateQueries({ queryKey: ["runs", { session_id: this.sessionId }] });
    void this.loadOpening(runId).then((saved) => {
      const { live } = this.state;
      if (cutOff && live?.runId === runId)
        this.change({ live: { ...live, items: [...savedPart(cutOff, savedOf(runId, saved)), ...live.items] } });
    });
  }

  /** Load the message that the run answers, of a wake or of another client; it is saved with `stream_start`.
   *
   * Repeated if the request failed, or if the server is of an earlier version, which saved a wake's message later. */
  private async loadOpening(runId: string): Promise<SessionDetail | undefined> {
    for (let pause = 150; ; pause *= 2) {
      const saved = await this.load();
      this.change({ opening: this.state.opening.filter((each) => each !== runId) });
      const isThere = saved?.messages.some((message) => message.run_id === runId);
      if (isThere || pause > 5_000 || this.state.live?.runId !== runId) return saved;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  private add(frame: SessionFrame): void {
    const { live, isReplaying } = this.state;
    if (live) this.change({ live: { ...live, items: addFrame(live.items, frame, isReplaying ? null : Date.now()) } });
  }

  private end(status: LiveRun["status"], error: LiveRun["error"] = null): void {
    const { live, settling, ended, isReplaying } = this.state;
    const over: LiveRun[] = live ? [{ ...live, status, error, items: settleAll(live.items) }] : [];
    // Only a run in progress is replayed: an end in it is from before the run was continued.
    const justEnded = isReplaying ? [] : over.map((run) => run.runId);
    this.change({ live: null, settling: [...settling, ...over], ended: [...ended, ...justEnded] });
    if (!isReplaying) void this.reload();
  }

  /** Reload the saved transcript, then drop the ended runs that it contains. */
  private async reload(): Promise<void> {
    const { settling } = this.state;
    const [saved] = await Promise.all([
      this.load(),
      queryClient.refetchQueries({ queryKey: ["runs", { session_id: this.sessionId }] }),
    ]);
    if (saved) this.change({ settling: this.state.settling.filter((run) => !settling.includes(run)) });
  }

  /** Load the saved transcript; undefined if the server did not answer.
   *
   * It replaces a request that is in progress, of any part of the page: that response may be out of date.
   */
  private async load(): Promise<SessionDetail | undefined> {
    const { queryKey } = sessionQuery(this.sessionId);
    await queryClient.refetchQueries({ queryKey });
    const loaded = queryClient.getQueryState(queryKey);
    return loaded?.status === "success" ? loaded.data : undefined;
  }
}

function savedOf(runId: string, session: SessionDetail | undefined): Item[] {
  return toTurns(session?.messages ?? [])
    .filter((turn) => turn.runId === runId)
    .flatMap((turn) => turn.items);
}

export function useSessionStream(sessionId: string): StreamState {
  const [stream, setStream] = useState<SessionStream | null>(null);
  useEffect(() => {
    const opened = new SessionStream(sessionId);
    setStream(opened);
    return () => opened.close();
  }, [sessionId]);
  return useSyncExternalStore(stream?.subscribe ?? nothing, stream?.snapshot ?? initial);
}

const initial = () => INITIAL;
const nothing = () => () => {};
