/** A WebSocket that reconnects and asks for the frames it missed. */

import { call } from "./client";

export type LinkState = "connecting" | "open" | "lost" | "gone";

interface Heard {
  seq?: number | null;
}

interface Options<F extends Heard> {
  onFrame: (frame: F) => void;
  onState?: (state: LinkState) => void;
}

const FIRST_PAUSE = 400;
const LONGEST_PAUSE = 10_000;
const SILENCE = 50_000; // the server sends a heartbeat every 20 seconds
const GONE = 4004;

export class LiveSocket<F extends Heard> {
  private socket: WebSocket | null = null;
  private after: number | null = null;
  private pause = FIRST_PAUSE;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;
  private isConnecting = false;
  private isClosed = false;

  constructor(
    private readonly path: string,
    private readonly options: Options<F>,
  ) {
    window.addEventListener("online", this.hurry);
    document.addEventListener("visibilitychange", this.hurry);
    this.connect();
  }

  close(): void {
    this.isClosed = true;
    window.removeEventListener("online", this.hurry);
    document.removeEventListener("visibilitychange", this.hurry);
    clearTimeout(this.retry);
    clearTimeout(this.silence);
    this.socket?.close();
  }

  /** Get a ticket, for a browser can send no header with a socket; a refused one shows the way to log in. */
  private connect(): void {
    if (this.isConnecting) return;
    this.isConnecting = true;
    void call("POST /ws-ticket")
      .finally(() => (this.isConnecting = false))
      .then(
        ({ ticket }) => this.open(ticket),
        () => this.lose(),
      );
  }

  private open(ticket: string): void {
    if (this.isClosed) return;
    const query = new URLSearchParams({ ticket });
    if (this.after !== null) query.set("after", String(this.after));
    const socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}${this.path}?${query}`);
    this.socket = socket;
    socket.onopen = () => {
      this.pause = FIRST_PAUSE;
      this.options.onState?.("open");
      this.listenForSilence();
    };
    socket.onmessage = (event: MessageEvent<string>) => {
      this.listenForSilence();
      const frame = JSON.parse(event.data) as F;
      if (typeof frame.seq === "number") this.after = frame.seq;
      this.options.onFrame(frame);
    };
    socket.onclose = (event) => this.lose(event.code);
  }

  private lose(code?: number): void {
    clearTimeout(this.silence);
    if (this.isClosed) return;
    if (code === GONE) {
      this.options.onState?.("gone");
      return;
    }
    this.options.onState?.("lost");
    this.retry = setTimeout(() => this.connect(), this.pause * (0.75 + Math.random() / 2));
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
  }

  private readonly hurry = (): void => {
    const isDown = this.socket === null || this.socket.readyState > WebSocket.OPEN;
    if (this.isClosed || !isDown || document.visibilityState === "hidden") return;
    clearTimeout(this.retry);
    this.pause = FIRST_PAUSE;
    this.connect();
  };

  private listenForSilence(): void {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.socket?.close(), SILENCE);
  }
}
