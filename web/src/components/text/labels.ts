/** Labels for the server's codes. */

import { MODES, REASONS, RUN_NOTES, RUN_STATUSES, WAKE_KINDS } from "../../api/server.generated";

export type Tone = "good" | "bad" | "busy" | "calm" | "wait";

export function reasonText(code: string): string {
  return lookUp(REASONS, code) ?? lookUp(RUN_NOTES, code) ?? lookUp(RUN_STATUSES, code) ?? code.replaceAll("_", " ");
}

const TONES: Record<keyof typeof RUN_STATUSES, Tone> = {
  queued: "wait",
  running: "busy",
  success: "good",
  failed: "bad",
  stopped: "calm",
  skipped: "calm",
  interrupted: "bad",
};

/** Notes that are shown instead of "done": the run gave no answer. */
const UNANSWERED: readonly string[] = [
  "did_nothing",
  "empty_answer",
  "call_as_text",
] satisfies (keyof typeof RUN_NOTES)[];

export function statusOf({ status, note }: { status: string; note?: string | null }): { text: string; tone: Tone } {
  if (note && UNANSWERED.includes(note)) return { text: reasonText(note), tone: "wait" };
  return { text: lookUp(RUN_STATUSES, status) ?? status, tone: lookUp(TONES, status) ?? "calm" };
}

/** Why a run ended as it did, unless its status says so already. */
export function reasonOf({ reason, note, status }: Ending): string | null {
  if (!reason || reason === status || reason === "error") return null; // the text of an error says more
  return reason === note && UNANSWERED.includes(reason) ? null : reasonText(reason);
}

/** Say whether a run that broke off may succeed if it is continued: a conversation that is too large stays so. */
export function canContinue(reason: string | null | undefined): boolean {
  return reason !== "context_too_large";
}

interface Ending {
  status: string;
  reason: string | null;
  note: string | null;
}

export type Mode = keyof typeof MODES;
export { MODES };

export function kindText(kind: string | null): string {
  return kind ? (lookUp(WAKE_KINDS, kind) ?? kind) : "Chat";
}

/** The start of a run that is past or running; the kinds of scheduled runs differ only in how they were scheduled. */
export function startText({ kind, trigger }: { kind: string | null; trigger: string }): string {
  if (kind === null) return "Chat";
  return trigger === "run_now" ? "Run by hand" : kind === "message" ? "Scheduled message" : "Scheduled run";
}

export function byWhom(by: string): string {
  return by === "user" ? "by you" : by === "agent" ? "by the agent" : "by the system";
}

function lookUp<T>(table: Readonly<Record<string, T>>, code: string): T | undefined {
  return Object.hasOwn(table, code) ? table[code] : undefined;
}

export function count(number: number, what: string): string {
  return `${number.toLocaleString()} ${what}${number === 1 ? "" : "s"}`;
}
