/** A WebSocket that reconnects and asks for the frames it missed. */

import { BASE } from "./base";
import { call } from "./client";

export type LinkState = "connecting" | "open" | "lost" | "gone";

interface Numbered {
  seq?: number | null;
}

interface Options<F extends Numbered> {
  onFrame: (frame: F) => void;
  onState?: (state: LinkState) => void;
}

const FIRST_RETRY_MS = 400;
const MAX_RETRY_MS = 10_000;
const SILENCE_MS = 50_000; // the server sends a heartbeat every 20 seconds
const CLOSED_AS_GONE = 4004; // the session was deleted

export class LiveSocket<F extends Numbered> {
  private socket: WebSocket | null = null;
  private after: number | null = null;
  private retryMs = FIRST_RETRY_MS;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;
  private isConnecting = false;
  private isClosed = false;

  constructor(
    private readonly path: string,
    private readonly options: Options<F>,
  ) {
    window.addEventListener("online", this.reconnectNow);
    document.addEventListener("visibilitychange", this.reconnectNow);
    this.connect();
  }

  close(): void {
    this.isClosed = true;
    window.removeEventListener("online", this.reconnectNow);
    document.removeEventListener("visibilitychange", this.reconnectNow);
    clearTimeout(this.retry);
    clearTimeout(this.silence);
    this.socket?.close();
  }

  /** Get a ticket, because a browser cannot send a header with a socket; a 401 shows how to log in. */
  private connect(): void {
    if (this.isConnecting) return;
    this.isConnecting = true;
    void call("POST /ws-ticket")
      .finally(() => (this.isConnecting = false))
      .then(
        ({ ticket }) => this.open(ticket),
        () => this.onClosed(),
      );
  }

  private open(ticket: string): void {
    if (this.isClosed) return;
    const query = new URLSearchParams({ ticket });
    if (this.after !== null) query.set("after", String(this.after));
    const socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}${BASE}${this.path}?${query}`);
    this.socket = socket;
    socket.onopen = () => {
      this.retryMs = FIRST_RETRY_MS;
      this.options.onState?.("open");
      this.restartSilenceTimer();
    };
    socket.onmessage = (event: MessageEvent<string>) => {
      this.restartSilenceTimer();
      const frame = JSON.parse(event.data) as F;
      if (typeof frame.seq === "number") this.after = frame.seq;
      this.options.onFrame(frame);
    };
    socket.onclose = (event) => this.onClosed(event.code);
  }

  private onClosed(code?: number): void {
    clearTimeout(this.silence);
    if (this.isClosed) return;
    if (code === CLOSED_AS_GONE) {
      this.options.onState?.("gone");
      return;
    }
    this.options.onState?.("lost");
    this.retry = setTimeout(() => this.connect(), this.retryMs * (0.75 + Math.random() / 2));
    this.retryMs = Math.min(this.retryMs * 2, MAX_RETRY_MS);
  }

  private readonly reconnectNow = (): void => {
    const isDown = this.socket === null || this.socket.readyState > WebSocket.OPEN;
    if (this.isClosed || !isDown || document.visibilityState === "hidden") return;
    clearTimeout(this.retry);
    this.retryMs = FIRST_RETRY_MS;
    this.connect();
  };

  private restartSilenceTimer(): void {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.socket?.close(), SILENCE_MS);
  }
}
