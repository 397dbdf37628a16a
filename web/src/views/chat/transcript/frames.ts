/** The reducer of a session's frames: adds each frame to the items of its run. */

import type { SessionFrame } from "../../../api/frames.generated";
import { type Item, newTool, type Tool } from "./items";

/** Add a frame to a run's items. `now` is null for frames that are replayed. */
export function addFrame(items: Item[], frame: SessionFrame, now: number | null): Item[] {
  if ("is_subagent" in frame && frame.is_subagent) return addToSubagent(items, frame, now);
  return addTo(items, frame, now);
}

function addTo(before: Item[], frame: SessionFrame, now: number | null): Item[] {
  const items = withoutWait(before); // any other frame ends the wait
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
        sentence: frame.sentence ?? "",
        shown: frame.shown ?? null, // none from 0.2: the run asks again when it continues
        approval: "asked",
      });
    case "approval_answered":
      return items.map((item) =>
        item.kind === "tool" && item.callId === frame.call_id && item.result === null
          ? { ...item, approval: frame.approved ? "approved" : "refused" }
          : item,
      );
    case "compression_started":
      return [...items, { kind: "note", text: "Context is nearly full: summarising earlier messages…" }];
    case "context_compressed":
      return [
        ...items,
        {
          kind: "note",
          text: `Earlier messages were summarised for the model (${frame.messages_before} became ${frame.messages_after}). Nothing is lost here.`,
        },
      ];
    case "server_note":
      return [...settle(settle(items, "thinking"), "text"), { kind: "note", text: frame.text }];
    case "profile_switched":
      return [...items, { kind: "note", text: `${frame.profile_name} takes over.` }];
    default:
      return items;
  }
}

function wait(items: Item[], frame: Extract<SessionFrame, { type: "waiting" }>, now: number | null): Item[] {
  const { for: on, reason, retry_in } = frame;
  const isRetried = typeof retry_in === "number";
  // The run continues without an MCP server that did not start, so this stays in the transcript.
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

/** Mark the items of a kind as complete. */
function settle(items: Item[], kind: "thinking" | "text"): Item[] {
  return items.map((item) => (item.kind === kind && item.isRunning ? { ...item, isRunning: false } : item));
}

export function settleAll(items: Item[]): Item[] {
  return settle(settle(withoutPlanning(withoutWait(items)), "thinking"), "text").map((item) =>
    item.kind === "tool" ? { ...item, isRunning: false, inner: settleAll(item.inner) } : item,
  );
}

function withoutPlanning(items: Item[]): Item[] {
  return items.some((item) => item.kind === "planning") ? items.filter((item) => item.kind !== "planning") : items;
}

function startTool(items: Item[], frame: Extract<SessionFrame, { type: "tool_started" }>, now: number | null): Item[] {
  const before = settle(settle(withoutPlanning(items), "text"), "thinking");
  const asked = before[indexOfOpen(before, frame.call_id)];
  const approval = asked?.kind === "tool" ? asked.approval : null;
  return withTool(before, {
    ...newTool(frame.call_id, frame.tool, frame.args),
    isRunning: true,
    startedAt: now,
    approval,
  });
}

/** Return the place of a call that has no result yet. Some providers use an id again for a later call. */
function indexOfOpen(items: Item[], callId: string): number {
  return items.findLastIndex((item) => item.kind === "tool" && item.callId === callId && item.result === null);
}

/** Replace a call's item, or add it at the end. */
function withTool(items: Item[], tool: Tool): Item[] {
  const index = indexOfOpen(items, tool.callId);
  return index < 0 ? [...items, tool] : items.with(index, tool);
}

function answerTool(items: Item[], frame: Extract<SessionFrame, { type: "tool_call" }>, now: number | null): Item[] {
  const index = indexOfOpen(items, frame.call_id);
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
