/** The live half of a session: what its socket says, kept until the saved transcript has it. */

import { useEffect, useState, useSyncExternalStore } from "react";
import type { SessionFrame } from "../../api/frames.generated";
import { queryClient, session as sessionQuery } from "../../api/queries";
import { LiveSocket, type LinkState } from "../../api/socket";
import { addFrame, type Item, settleAll, toTurns } from "./transcript";

export interface LiveRun {
  runId: string;
  items: Item[];
  status: "running" | "done" | "stopped" | "failed";
  error: { message: string; code: string } | null;
}

export interface StreamState {
  link: LinkState;
  live: LiveRun | null;
  isReplaying: boolean; // what comes now was said before we came: no animation
  endings: number; // how many runs have ended since we came
}

type Numbered = SessionFrame & { seq?: number | null };

export class SessionStream {
  private state: StreamState = { link: "connecting", live: null, isReplaying: false, endings: 0 };
  private shown = this.state;
  private readonly listeners = new Set<() => void>();
  private readonly socket: LiveSocket<Numbered>;
  private frameAsked = 0;

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

  /** Text comes faster than a screen shows it, so everything that came is drawn together. */
  private change(changed: Partial<StreamState>): void {
    this.state = { ...this.state, ...changed };
    if (this.frameAsked) return;
    const draw = () => {
      this.frameAsked = 0;
      this.shown = this.state;
      for (const listener of this.listeners) listener();
    };
    if (document.visibilityState === "hidden") draw();
    else this.frameAsked = requestAnimationFrame(draw);
  }

  private hear(frame: Numbered): void {
    switch (frame.type) {
      case "session_sync":
        void this.reload();
        return;
      case "replay_start":
        this.change({ isReplaying: true });
        return;
      case "replay_end":
        this.change({ isReplaying: false });
        return;
      case "heartbeat":
        return;
      case "recall_update":
        void queryClient.invalidateQueries({ queryKey: ["wakes"] });
        void queryClient.invalidateQueries({ queryKey: ["sessions"] });
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
    const isAgain = this.state.live?.runId === runId;
    this.change({ live: { runId, items: [], status: "running", error: null } });
    // The message this run answers may have come from elsewhere; and a run that was cut off goes on from what it saved.
    void this.load().then((saved) => {
      const { live } = this.state;
      if (!isAgain || live?.runId !== runId) return;
      const kept = toTurns(saved.messages).filter((turn) => turn.runId === runId);
      this.change({ live: { ...live, items: [...kept.flatMap((turn) => turn.items), ...live.items] } });
    });
  }

  private add(frame: SessionFrame): void {
    const { live, isReplaying } = this.state;
    if (live) this.change({ live: { ...live, items: addFrame(live.items, frame, isReplaying ? null : Date.now()) } });
  }

  private end(status: LiveRun["status"], error: LiveRun["error"] = null): void {
    const { live } = this.state;
    const endings = this.state.endings + 1;
    this.change({ endings, live: live && { ...live, status, error, items: settleAll(live.items) } });
    void this.reload();
  }

  /** Read the saved transcript; then what is in it need not be kept here any more. */
  private async reload(): Promise<void> {
    const ended = this.state.live;
    await this.load();
    void queryClient.invalidateQueries({ queryKey: ["runs"] });
    if (ended && ended.status !== "running" && this.state.live?.runId === ended.runId && this.state.live.status !== "running") {
      this.change({ live: null });
    }
  }

  private load() {
    return queryClient.fetchQuery({ ...sessionQuery(this.sessionId), staleTime: 0 });
  }
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

const INITIAL: StreamState = { link: "connecting", live: null, isReplaying: false, endings: 0 };
const initial = () => INITIAL;
const nothing = () => () => {};
