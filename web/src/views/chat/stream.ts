/** The live state of a session: the frames of its socket, until the saved transcript has them. */

import { useEffect, useState, useSyncExternalStore } from "react";
import { call } from "../../api/client";
import type { ScheduleUpdate, SessionFrame } from "../../api/frames.generated";
import { queryClient, session as sessionQuery } from "../../api/queries";
import type { SessionDetail } from "../../api/rest.generated";
import { type LinkState, LiveSocket } from "../../api/socket";
import { staleQueries } from "../../api/stale";
import { addFrame, settleAll } from "./frames";
import type { Item } from "./items";
import { savedPart, toTurns } from "./turns";

export interface LiveRun {
  runId: string;
  items: Item[];
  status: "running" | "done" | "stopped" | "failed";
  error: { message: string; code: string } | null;
}

export interface StreamState {
  link: LinkState;
  live: LiveRun | null; // the one at work
  settling: readonly LiveRun[]; // those that have ended, until the saved transcript is read again
  isReplaying: boolean; // what comes now was said before we came: no animation
  ended: readonly string[]; // the runs that have ended since we came
}

type Numbered = (SessionFrame | ScheduleUpdate) & { seq?: number | null };

const APART = 24; // milliseconds between two drawings: every second frame of most screens

export class SessionStream {
  private state: StreamState = { link: "connecting", live: null, settling: [], isReplaying: false, ended: [] };
  private shown = this.state;
  private readonly listeners = new Set<() => void>();
  private readonly socket: LiveSocket<Numbered>;
  private frameAsked = 0;
  private drawnAt = 0;
  private lastAsked = 0; // loads are counted, so that an answer that is late does not undo a later one
  private lastTaken = 0;

  constructor(private readonly sessionId: string) {
    this.socket = new LiveSocket<Numbered>(`/ws/sessions/${encodeURIComponent(sessionId)}`, {
      onFrame: (frame) => this.hear(frame),
      onState: (link) => this.change({ link }),
    });
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly snapshot = (): StreamState => this.shown;

  close(): void {
    cancelAnimationFrame(this.frameAsked);
    this.socket.close();
  }

  /** Text comes faster than eyes read it, so everything that came is drawn together, and never in two frames running. */
  private change(changed: Partial<StreamState>): void {
    this.state = { ...this.state, ...changed };
    if (document.visibilityState === "hidden")
      this.draw(); // a hidden page is given no frames, and may have a message to send
    else this.frameAsked ||= requestAnimationFrame(this.drawInTime);
  }

  private readonly drawInTime = (now: number): void => {
    const isEarly = now - this.drawnAt < APART;
    this.frameAsked = isEarly ? requestAnimationFrame(this.drawInTime) : 0;
    if (isEarly) return;
    this.drawnAt = now;
    this.draw();
  };

  private draw(): void {
    this.shown = this.state;
    for (const listener of this.listeners) listener();
  }

  private hear(frame: Numbered): void {
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
    const cutOff = live?.runId === runId ? live.items : null; // by a crash: what it said after its last saved step is void
    // A run that is continued goes on behind what it has said before. The transcript may have more of it than that.
    const before = settling.findLast((run) => run.runId === runId)?.items;
    const known = queryClient.getQueryData(sessionQuery(this.sessionId).queryKey);
    this.change({
      live: { runId, items: cutOff ? [] : (before ?? savedOf(runId, known)), status: "running", error: null },
    });
    void queryClient.invalidateQueries({ queryKey: ["runs", { session_id: this.sessionId }] });
    void this.loadOpening(runId).then((saved) => {
      const { live } = this.state;
      if (cutOff && live?.runId === runId)
        this.change({ live: { ...live, items: [...savedPart(cutOff, savedOf(runId, saved)), ...live.items] } });
    });
  }

  /** Load until the message that a run answers is there: it may come from elsewhere, and a wake saves it as it begins. */
  private async loadOpening(runId: string): Promise<SessionDetail> {
    for (let pause = 150; ; pause *= 2) {
      const saved = await this.load();
      const isThere = saved.messages.some((message) => message.run_id === runId);
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
    // What is replayed is a run at work: an end in it was one of before it was continued.
    const justEnded = isReplaying ? [] : over.map((run) => run.runId);
    this.change({ live: null, settling: [...settling, ...over], ended: [...ended, ...justEnded] });
    if (!isReplaying) void this.reload();
  }

  /** Reload the saved transcript, then drop the ended runs that it contains. */
  private async reload(): Promise<void> {
    const { settling } = this.state;
    await Promise.all([
      this.load(),
      queryClient.refetchQueries({ queryKey: ["runs", { session_id: this.sessionId }] }),
    ]);
    this.change({ settling: this.state.settling.filter((run) => !settling.includes(run)) });
  }

  /** Ask anew even while an earlier question is open: its answer may have been written too early. */
  private async load(): Promise<SessionDetail> {
    const { queryKey } = sessionQuery(this.sessionId);
    const asked = ++this.lastAsked;
    await queryClient.cancelQueries({ queryKey });
    const saved = await call("GET /sessions/{session_id}", { path: { session_id: this.sessionId } });
    if (asked > this.lastTaken) {
      this.lastTaken = asked;
      queryClient.setQueryData(queryKey, saved);
    }
    return saved;
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

const INITIAL: StreamState = { link: "connecting", live: null, settling: [], isReplaying: false, ended: [] };
const initial = () => INITIAL;
const nothing = () => () => {};
