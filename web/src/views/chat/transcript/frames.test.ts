import { describe, expect, it } from "vitest";
import type { SessionFrame } from "../../../api/frames.generated";
import { addFrame, settleAll } from "./frames";
import type { Item } from "./items";

const NOW = 1_000_000;
const itemsAfter = (...frames: SessionFrame[]) =>
  frames.reduce<Item[]>((items, frame) => addFrame(items, frame, NOW), []);
const started: SessionFrame = { type: "tool_started", tool: "read_file", args: {}, call_id: "c" };

describe("addFrame", () => {
  it("joins deltas, and starts a new item after thinking", () => {
    const items = itemsAfter(
      { type: "thinking_delta", delta: "Hm" },
      { type: "stream_delta", delta: "Hel" },
      { type: "stream_delta", delta: "lo" },
    );
    expect(items).toEqual([
      { kind: "thinking", text: "Hm", isRunning: false },
      { kind: "text", text: "Hello", isRunning: true },
    ]);
  });
  it("fills a tool's card with its result", () => {
    const answered: SessionFrame = { ...started, type: "tool_call", result: "text", success: false };
    expect(itemsAfter(started, answered)).toMatchObject([
      { kind: "tool", isRunning: false, result: "text", success: false },
    ]);
  });
  it("keeps an earlier call whose id a provider uses again", () => {
    const answered: SessionFrame = { ...started, type: "tool_call", result: "text", success: true };
    const again: SessionFrame = { ...started, tool: "list_files" };
    expect(itemsAfter(started, answered, again)).toMatchObject([
      { tool: "read_file", result: "text" },
      { tool: "list_files", result: null, isRunning: true },
    ]);
  });
  it("asks for approval in the call's own card", () => {
    const shown = [{ name: "command", start: "make", middle: "", end: "" }];
    const asked = itemsAfter({ type: "approval_requested", tool: "shell", args: {}, call_id: "c", shown });
    expect(asked).toMatchObject([{ approval: "asked", isRunning: true, shown }]);
    const answered = addFrame(asked, { type: "approval_answered", tool: "shell", call_id: "c", approved: false }, NOW);
    expect(answered).toMatchObject([{ approval: "refused" }]);
  });
  it("shows a wait until the next frame", () => {
    const waiting = itemsAfter({ type: "waiting", for: "model", reason: "busy", retry_in: 4 });
    expect(waiting).toMatchObject([{ kind: "wait", retryAt: NOW + 4000 }]);
    expect(addFrame(waiting, { type: "stream_delta", delta: "Hi" }, NOW)).toMatchObject([{ kind: "text" }]);
  });
  it("puts a subagent's frames into the card of its call", () => {
    const inner: SessionFrame = { type: "turn_thinking", thinking: "…", is_subagent: true, subagent_id: "c" };
    expect(itemsAfter(started, inner)).toMatchObject([{ kind: "tool", inner: [{ kind: "thinking" }] }]);
  });
});

it("leaves nothing running at the end of a run", () => {
  const items = settleAll(itemsAfter(started, { type: "stream_delta", delta: "Hi" }));
  expect(items.some((item) => "isRunning" in item && item.isRunning)).toBe(false);
});
