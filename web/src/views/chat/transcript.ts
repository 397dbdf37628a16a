/** What was said, in the pieces that are shown: the same for a saved transcript and for frames as they come. */

import type { SessionFrame } from "../../api/frames.generated";
import type { MessageShape } from "../../api/rest.generated";

export interface Thinking {
  kind: "thinking";
  text: string;
  isRunning: boolean;
}
export interface Text {
  kind: "text";
  text: string;
  isRunning: boolean;
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
/** What the run waits for, until its next frame. */
export interface Wait {
  kind: "wait";
  on: "model" | "mcp_server";
  reason: string;
  retryAt: number | null; // milliseconds; null: it is being tried, or nobody here knows when that will be
  isRetried: boolean;
}
export interface Note {
  kind: "note";
  text: string;
}
export interface Tool {
  kind: "tool";
  callId: string;
  tool: string;
  args: Record<string, unknown>;
  isRunning: boolean;
  result: string | null; // null: none yet, or none any more
  success: boolean | null;
  metadata: Record<string, unknown>;
  startedAt: number | null; // milliseconds; null: nobody here saw it begin
  seconds: number | null;
  inner: Item[]; // what a subagent does
  approval: "asked" | "approved" | "refused" | null; // null: nobody had to be asked
}
export type Item = Thinking | Text | Plan | Planning | Wait | Note | Tool;

/** A message and what came of it. */
export interface Turn {
  key: string;
  runId: string | null;
  asked: MessageShape | null;
  items: Item[];
  isCutOff: boolean;
}

const NOTES: Record<string, string> = {
  iteration_limit: "It reached its limit of steps.",
  did_nothing: "It was woken and did nothing.",
  empty_answer: "It ended without an answer.",
  repeated_calls: "It was going round in circles, and was stopped.",
};

/** Cut a saved transcript into turns. A person's message does not name its run; `runOf` may know it, or its answer tells. */
export function toTurns(
  messages: MessageShape[],
  runOf: (message: MessageShape) => string | null = () => null,
): Turn[] {
  const turns: Turn[] = [];
  let openCalls = new Map<string, { tool: Tool; at: number }>();
  for (const message of messages) {
    let turn = turns.at(-1);
    const isAnswer = turn?.asked && turn.runId === null && turn.items.length === 0;
    const goesOn = isAnswer || turn?.runId === message.run_id || message.source === "preloaded";
    if (message.role === "user" || !turn || !goesOn) {
      turn = {
        key: message.id,
        runId: message.run_id ?? (message.role === "user" ? runOf(message) : null),
        asked: message.role === "user" ? message : null,
        items: [],
        isCutOff: false,
      };
      turns.push(turn);
      openCalls = new Map();
    }
    turn.runId ??= message.run_id;
    if (message.role !== "user") addSaved(turn, message, openCalls);
  }
  return withKeys(turns);
}

/** A turn is known by its run, so that it stays the same one on the screen when its message is saved. */
function withKeys(turns: Turn[]): Turn[] {
  const seen = new Map<string, number>();
  for (const turn of turns) {
    if (turn.runId === null) continue;
    const count = seen.get(turn.runId) ?? 0;
    seen.set(turn.runId, count + 1);
    turn.key = `${turn.runId}:${count}`;
  }
  return turns;
}

type OpenCalls = Map<string, { tool: Tool; at: number }>;

function addSaved(turn: Turn, message: MessageShape, openCalls: OpenCalls): void {
  if (message.subagent) {
    const host = turn.items.find((item) => item.kind === "tool" && item.callId === message.subagent?.id);
    if (host?.kind === "tool") addStep(host.inner, { ...message, role: message.subagent.role }, openCalls);
    return;
  }
  turn.isCutOff ||= message.is_cut_off ?? false;
  addStep(turn.items, message, openCalls);
}

function addStep(items: Item[], message: MessageShape, openCalls: OpenCalls): void {
  const at = Date.parse(message.created_at);
  if (message.role === "plan") {
    items.push({ kind: "plan", text: message.content });
    return;
  }
  if (message.role === "summary") {
    items.push({ kind: "note", text: "What was said earlier is summarised for the model. Nothing here is lost." });
    return;
  }
  if (message.role === "tool") {
    const told = (message.tool ?? {}) as {
      call_id?: string;
      tool?: string;
      args?: Record<string, unknown>;
      success?: boolean;
      metadata?: Record<string, unknown>;
    };
    const open = openCalls.get(told.call_id ?? "");
    const tool = open?.tool ?? newTool(told.call_id ?? message.id, told.tool ?? "tool", told.args ?? {});
    if (!open) items.push(tool);
    tool.result = message.content;
    tool.success = told.success ?? null;
    tool.metadata = told.metadata ?? {};
    tool.seconds = open ? Math.max(0, at - open.at) / 1000 : null;
    // Calls of one reply are made one after the other, so the next begins where this one ended.
    for (const other of openCalls.values()) other.at = Math.max(other.at, at);
    return;
  }
  if (message.thinking) items.push({ kind: "thinking", text: message.thinking, isRunning: false });
  if (message.role !== "assistant") return; // what only the model needs: a subagent's task, thoughts while planning
  if (message.note) {
    items.push({ kind: "note", text: NOTES[message.note] ?? message.content });
    return;
  }
  if (message.content) items.push({ kind: "text", text: message.content, isRunning: false });
  for (const call of message.tool_calls ?? []) {
    const { call_id, tool, args } = call as { call_id: string; tool: string; args: Record<string, unknown> };
    const item = newTool(call_id, tool, args ?? {});
    items.push(item);
    openCalls.set(call_id, { tool: item, at });
  }
}

function newTool(callId: string, tool: string, args: Record<string, unknown>): Tool {
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
    approval: null,
  };
}

/** Add a frame to what a run has said. `now` is null for what was said before we came. */
export function addFrame(items: Item[], frame: SessionFrame, now: number | null): Item[] {
  if ("is_subagent" in frame && frame.is_subagent) return addToSubagent(items, frame, now);
  return addTo(items, frame, now);
}

function addTo(before: Item[], frame: SessionFrame, now: number | null): Item[] {
  const items = withoutWait(before); // whatever comes next ends the waiting
  switch (frame.type) {
    case "waiting":
      return wait(items, frame, now);
    case "thinking_delta":
      return append(items, "thinking", frame.delta);
    case "stream_delta":
      return append(items, "text", frame.delta);
    case "thinking_end":
      return settle(items, "thinking");
    case "turn_thinking":
      return [...withoutPlanning(items), { kind: "thinking", text: frame.thinking, isRunning: false }];
    case "planning_status":
      return [...withoutPlanning(items), { kind: "planning", phase: frame.phase, label: frame.label }];
    case "plan_ready":
      return [...withoutPlanning(items), { kind: "plan", text: frame.plan }];
    case "tool_started":
      return startTool(items, frame, now);
    case "tool_call":
      return answerTool(items, frame, now);
    case "approval_requested":
      return withTool(withoutPlanning(items), {
        ...newTool(frame.call_id, frame.tool, frame.args),
        isRunning: true,
        approval: "asked",
      });
    case "approval_answered":
      return items.map((item) =>
        item.kind === "tool" && item.callId === frame.call_id
          ? { ...item, approval: frame.approved ? "approved" : "refused" }
          : item,
      );
    case "compression_started":
      return [...items, { kind: "note", text: "Making room: what was said earlier is being summarised…" }];
    case "context_compressed":
      return [
        ...items,
        {
          kind: "note",
          text: `What was said earlier is summarised for the model: ${frame.messages_before} messages became ${frame.messages_after}. Nothing here is lost.`,
        },
      ];
    case "profile_switched":
      return [...items, { kind: "note", text: `${frame.profile_name} goes on from here.` }];
    default:
      return items;
  }
}

function wait(items: Item[], frame: Extract<SessionFrame, { type: "waiting" }>, now: number | null): Item[] {
  const { for: on, reason, retry_in } = frame;
  const isRetried = typeof retry_in === "number";
  // The run goes on without a server that did not start, and that stays worth knowing.
  if (on === "mcp_server" && isRetried) return [...items, { kind: "note", text: `MCP server ${reason}` }];
  const retryAt = isRetried && now !== null ? now + retry_in * 1000 : null;
  return [...items, { kind: "wait", on, reason, retryAt, isRetried }];
}

function withoutWait(items: Item[]): Item[] {
  return items.at(-1)?.kind === "wait" ? items.slice(0, -1) : items;
}

function append(items: Item[], kind: "thinking" | "text", delta: string): Item[] {
  const last = items.at(-1);
  if (last?.kind === kind && last.isRunning) return [...items.slice(0, -1), { ...last, text: last.text + delta }];
  const before = settle(settle(withoutPlanning(items), "thinking"), "text");
  return [...before, { kind, text: delta, isRunning: true }];
}

/** Nothing goes on any more in pieces of a kind. */
function settle(items: Item[], kind: "thinking" | "text"): Item[] {
  return items.map((item) => (item.kind === kind && item.isRunning ? { ...item, isRunning: false } : item));
}

export function settleAll(items: Item[]): Item[] {
  return settle(settle(withoutPlanning(withoutWait(items)), "thinking"), "text").map((item) =>
    item.kind === "tool" ? { ...item, isRunning: false, inner: settleAll(item.inner) } : item,
  );
}

/** Return the part of a saved transcript that was said already when a crash cut a run off; later attempts may have saved more. */
export function savedPart(said: Item[], saved: Item[]): Item[] {
  let place = 0;
  const isOfLater = (item: Item) => {
    if (item.kind === "note") return false; // made by the server, in words of its own
    place = said.findIndex((other, index) => index >= place && isSame(item, other)) + 1;
    return place === 0;
  };
  const end = saved.findIndex(isOfLater);
  return end < 0 ? saved : saved.slice(0, end);
}

function isSame(one: Item, other: Item): boolean {
  if (one.kind === "tool") return other.kind === "tool" && other.callId === one.callId;
  return one.kind === other.kind && "text" in one && "text" in other && one.text.trim() === other.text.trim();
}

function withoutPlanning(items: Item[]): Item[] {
  return items.some((item) => item.kind === "planning") ? items.filter((item) => item.kind !== "planning") : items;
}

function startTool(items: Item[], frame: Extract<SessionFrame, { type: "tool_started" }>, now: number | null): Item[] {
  const before = settle(settle(withoutPlanning(items), "text"), "thinking");
  const asked = before.find((item) => item.kind === "tool" && item.callId === frame.call_id);
  const approval = asked?.kind === "tool" ? asked.approval : null;
  return withTool(before, {
    ...newTool(frame.call_id, frame.tool, frame.args),
    isRunning: true,
    startedAt: now,
    approval,
  });
}

/** Put a call in the place it has already, or behind everything. */
function withTool(items: Item[], tool: Tool): Item[] {
  const index = items.findLastIndex((item) => item.kind === "tool" && item.callId === tool.callId);
  return index < 0 ? [...items, tool] : items.with(index, tool);
}

function answerTool(items: Item[], frame: Extract<SessionFrame, { type: "tool_call" }>, now: number | null): Item[] {
  const index = items.findLastIndex((item) => item.kind === "tool" && item.callId === frame.call_id);
  const begun = (items[index] as Tool | undefined) ?? newTool(frame.call_id, frame.tool, frame.args);
  const tool: Tool = {
    ...begun,
    isRunning: false,
    result: frame.result,
    success: frame.success,
    metadata: frame.metadata ?? {},
    seconds: now !== null && begun.startedAt !== null ? (now - begun.startedAt) / 1000 : null,
    inner: settleAll(begun.inner),
  };
  return index < 0 ? [...items, tool] : items.with(index, tool);
}

/** A subagent's frames go into the card of the call that spawned it. */
function addToSubagent(
  items: Item[],
  frame: Extract<SessionFrame, { is_subagent?: boolean }>,
  now: number | null,
): Item[] {
  const id = frame.subagent_id;
  const isHost = (item: Item) => item.kind === "tool" && (item.callId === id || item.metadata.subagent_id === id);
  let index = items.findLastIndex(isHost);
  if (index < 0) index = items.findLastIndex((item) => item.kind === "tool" && item.isRunning);
  const host = items[index];
  if (host?.kind !== "tool") return addTo(items, frame as SessionFrame, now);
  return items.with(index, { ...host, inner: addTo(host.inner, frame as SessionFrame, now) });
}
