/** The parts of an answer as they are shown: the same for a saved transcript and for frames as they arrive. */

import type { ShownArgument } from "../../../api/frames.generated";

export interface Thinking {
  kind: "thinking";
  text: string;
  isRunning: boolean;
}
export interface Text {
  kind: "text";
  text: string;
  isRunning: boolean;
  messageId?: string; // of a saved message
}
export interface Plan {
  kind: "plan";
  text: string;
}
export interface Planning {
  kind: "planning";
  phase: number;
  label: string;
}
/** A wait for a model or a server, until the run's next frame. */
export interface Wait {
  kind: "wait";
  on: "model" | "mcp_server";
  reason: string;
  retryAt: number | null; // milliseconds; null: it is being tried now, or the time is unknown
  isRetried: boolean;
}
export interface Note {
  kind: "note";
  text: string;
}
/** Data that the model was given: of another system, or turns that the agent wrote when it booked the session. */
export interface GivenData {
  kind: "data";
  from: "hook" | "preloaded";
  text: string;
}
export interface Tool {
  kind: "tool";
  callId: string;
  tool: string;
  args: Record<string, unknown>;
  isRunning: boolean;
  result: string | null; // null: none yet, or the run ended without one
  success: boolean | null;
  metadata: Record<string, unknown>;
  startedAt: number | null; // milliseconds; null: it began before the page was open
  seconds: number | null;
  inner: Item[]; // what a subagent does
  sentence: string; // what a call that needs approval would do
  shown: ShownArgument[] | null; // its arguments; null: it needs none
  approval: "asked" | "approved" | "refused" | null; // null: it needs none
}
export type Item = Thinking | Text | Plan | Planning | Wait | Note | GivenData | Tool;

export function newTool(callId: string, tool: string, args: Record<string, unknown>): Tool {
  return {
    kind: "tool",
    callId,
    tool,
    args,
    isRunning: false,
    result: null,
    success: null,
    metadata: {},
    startedAt: null,
    seconds: null,
    inner: [],
    sentence: "",
    shown: null,
    approval: null,
  };
}
