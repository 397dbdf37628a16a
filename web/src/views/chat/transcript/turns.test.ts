import { describe, expect, it } from "vitest";
import type { MessageShape } from "../../../api/rest.generated";
import { SERVER_NOTES } from "../../../api/server.generated";
import { assembleTurns, hasMessage, toTurns } from "./turns";

let count = 0;
function message(role: string, content: string, run_id: string | null, more: Partial<MessageShape> = {}): MessageShape {
  count += 1;
  const created_at = "2026-11-17T12:00:00Z"; // the same for all: nothing is paired by time
  const none = { is_recall: false, source: null, wake_id: null, label: null };
  return { id: `m${count}`, index: count, role, content, created_at, run_id, ...none, ...more };
}
const shown = (turns: ReturnType<typeof toTurns>) =>
  turns.map((turn) => [turn.runId, turn.asked?.content ?? null, turn.items.map((item) => item.kind)]);

describe("toTurns", () => {
  it("pairs messages and answers by their run, whatever their time", () => {
    const saved = [message("user", "One", "r1"), message("user", "Two", "r2"), message("assistant", "Second", "r2")];
    expect(shown(toTurns(saved))).toEqual([
      ["r1", "One", []],
      ["r2", "Two", ["text"]],
    ]);
  });
  it("shows old messages, which name no run, with the answer that follows", () => {
    const saved = [message("user", "Old", null), message("assistant", "Answer", "r1"), message("user", "Last", null)];
    expect(shown(toTurns(saved))).toEqual([
      ["r1", "Old", ["text"]],
      [null, "Last", []],
    ]);
  });
  it("keeps which message a text is", () => {
    const saved = [message("user", "Look", "r1"), message("assistant", "Seen", "r1")];
    expect(toTurns(saved)[0]?.items).toMatchObject([{ kind: "text", messageId: saved[1]?.id }]);
  });
  it("puts a tool's result into the card of its call", () => {
    const call = { call_id: "c", tool: "read_file", args: { path: "a" } };
    const saved = [
      message("user", "Read", "r1"),
      message("assistant", "", "r1", { tool_calls: [call] }),
      message("tool", "text of a", "r1", { tool: { ...call, success: true } }),
    ];
    expect(toTurns(saved)[0]?.items).toMatchObject([
      { kind: "tool", tool: "read_file", result: "text of a", success: true },
    ]);
  });
});

describe("calls with the same id", () => {
  it("of an agent and its subagent are apart", () => {
    const of = (tool: string) => ({ call_id: "call_1", tool, args: {} });
    const step = (role: string, content: string, more: Partial<MessageShape>) =>
      message("subagent", content, "r1", { subagent: { id: "call_1", agent: "Digger", role }, ...more });
    const saved = [
      message("user", "Dig", "r1"),
      message("assistant", "", "r1", { tool_calls: [of("spawn_agent")] }),
      step("assistant", "", { tool_calls: [of("list_files")] }),
      step("tool", "a.txt", { tool: { ...of("list_files"), success: true } }),
      message("tool", "Found it.", "r1", { tool: { ...of("spawn_agent"), success: true } }),
    ];
    expect(toTurns(saved)[0]?.items).toMatchObject([
      { tool: "spawn_agent", result: "Found it.", inner: [{ tool: "list_files", result: "a.txt" }] },
    ]);
  });
});

describe("versions", () => {
  it("of a turn are in the turn that replaced them, one after the other", () => {
    const saved = [
      message("user", "Before", "r0"),
      message("user", "One", "r1", { superseded_by: "r2" }),
      message("assistant", "First", "r1", { superseded_by: "r2" }),
      message("user", "Two", "r2", { superseded_by: "r3" }),
      message("user", "Three", "r3"),
      message("assistant", "Third", "r3"),
    ];
    const turns = toTurns(saved);
    expect(shown(turns).map(([, asked]) => asked)).toEqual(["Before", "Three"]);
    const versions = turns[1]?.versions.map((each) => each.map((turn) => [turn.asked?.content, turn.count]));
    expect(versions).toEqual([[["One", 2]], [["Two", 1]]]);
    expect(turns.map((turn) => hasMessage(turn, saved[2]?.id ?? ""))).toEqual([false, true]);
  });
});

describe("what the server says", () => {
  it("is a note of its own, beside the answer it is about", () => {
    const saved = [
      message("user", "How is it?", "r1"),
      message("assistant", "I'll look again later.", "r1"),
      message("notice", "[From the server] Book it.", "r1", { note: "promise" }),
      message("assistant", "I will.", "r1", { remark: "unkept_promise" }),
    ];
    expect(toTurns(saved)[0]?.items).toMatchObject([
      { kind: "text", text: "I'll look again later.", isRunning: false },
      { kind: "note", text: SERVER_NOTES.promise },
      { kind: "text", text: "I will.", isRunning: false },
      { kind: "note", text: SERVER_NOTES.unkept_promise },
    ]);
  });
});

describe("turns that an agent booked its session with", () => {
  it("are data of the agent, not a message of the person", () => {
    const saved = [
      message("notice", "The agent wrote: …", "r1", { note: "preloaded", source: "preloaded" }),
      message("user", "Go on.", "r1", { source: "scheduled" }),
    ];
    const [first, second] = toTurns(saved);
    expect([first?.asked, first?.items]).toEqual([
      null,
      [{ kind: "data", from: "preloaded", text: "The agent wrote: …" }],
    ]);
    expect(second?.asked?.content).toBe("Go on.");
  });
});

describe("assembleTurns", () => {
  const pending = { runId: null as string | null, message: message("user", "New", null), savedBefore: 0 };
  it("shows a message while it is sent, and once when it is saved", () => {
    expect(shown(assembleTurns([], pending, []))).toEqual([[null, "New", []]]);
    expect(shown(assembleTurns([], { ...pending, runId: "r1" }, ["r1"]))).toEqual([["r1", "New", []]]);
    const saved = [message("user", "New", "r1")];
    expect(shown(assembleTurns(saved, { ...pending, runId: "r1" }, ["r1"]))).toEqual([["r1", "New", []]]);
    expect(shown(assembleTurns(saved, pending, ["r1"]))).toEqual([["r1", "New", []]]);
  });
  it("keeps an equal message of before apart from the one that is sent", () => {
    const saved = [message("user", "New", "r0"), message("assistant", "Yes", "r0")];
    const turns = assembleTurns(saved, { ...pending, runId: "r1", savedBefore: 2 }, ["r1"]);
    expect(shown(turns).map(([runId]) => runId)).toEqual(["r0", "r1"]);
  });
  it("has no turn of its own for a run that ended and was replaced a moment later", () => {
    const saved = [message("user", "One", "r1", { superseded_by: "r2" }), message("user", "Two", "r2")];
    expect(shown(assembleTurns(saved, null, ["r1", "r2"])).map(([runId]) => runId)).toEqual(["r2"]);
  });
  it("has a turn for a run whose message is not loaded yet", () => {
    expect(shown(assembleTurns([], null, ["r7"]))).toEqual([["r7", null, []]]);
  });
});
