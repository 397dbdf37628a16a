/** A saved transcript cut into turns, with the message that is being sent and the runs that are still streaming. */

import type { MessageShape } from "../../../api/rest.generated";
import { SERVER_NOTES } from "../../../api/server.generated";
import { type Item, newTool, type Tool } from "./items";

/** A message and the answer to it. */
export interface Turn {
  key: string;
  runId: string | null;
  asked: MessageShape | null;
  items: Item[];
  isCutOff: boolean;
  supersededBy: string | null; // the run that replaced it, by a retry or an edit
  versions: Turn[][]; // earlier versions of it, each with the turns that it replaced
  count: number; // messages of a person and of the agent in it
}

/** A message that was sent and is not yet in the saved transcript. */
export interface PendingMessage {
  runId: string | null; // null: the server has not answered yet
  message: MessageShape;
  savedBefore: number; // how many messages were saved when it was sent
}

const EMPTY: Turn = {
  key: "",
  runId: null,
  asked: null,
  items: [],
  isCutOff: false,
  supersededBy: null,
  versions: [],
  count: 0,
};

/** Return the turns of a session: those saved, the pending message, and one for each run that is still streaming. */
export function assembleTurns(
  messages: MessageShape[],
  pending: PendingMessage | null,
  streamingIds: readonly string[],
): Turn[] {
  const turns = toTurns(messages);
  if (pending && !isSaved(pending, messages)) {
    const { runId, message } = pending;
    turns.push({ ...EMPTY, key: `${runId ?? "pending"}:0`, runId, asked: message });
  }
  return streamingIds.reduce(withRun, turns);
}

function isSaved({ runId, message, savedBefore }: PendingMessage, messages: MessageShape[]): boolean {
  if (runId !== null) return messages.some((saved) => saved.run_id === runId);
  return messages.slice(savedBefore).some((saved) => saved.role === "user" && saved.content === message.content);
}

/** Return the turns with one for a run. The last message belongs to it if it names no run. */
function withRun(turns: Turn[], runId: string): Turn[] {
  const isOfRun = (turn: Turn) => turn.runId === runId;
  if (turns.some((turn) => isOfRun(turn) || turn.versions.flat().some(isOfRun))) return turns;
  const last = turns.at(-1);
  if (last?.asked && last.runId === null) return turns.with(-1, { ...last, key: `${runId}:0`, runId });
  return [...turns, { ...EMPTY, key: `${runId}:0`, runId }];
}

const NOTES: Record<string, string> = {
  iteration_limit: "It reached its step limit.",
  did_nothing: "It ran and did nothing.",
  empty_answer: "It ended without an answer.",
  repeated_calls: "It kept repeating the same calls and was stopped.",
  repeated_text: "It kept repeating the same text and was cut off.",
  output_limit: "Its answer was cut off at the model's output limit. Ask it to continue.",
  unkept_promise: SERVER_NOTES.unkept_promise,
};

/** Return a message of the server to the model in words for people. */
function serverNote(code: string | null | undefined): string {
  const texts: Record<string, string> = SERVER_NOTES;
  return texts[code ?? ""] ?? "The server has sent the model a note.";
}

/** Cut a saved transcript into turns. Old messages do not name their run: then the answer that follows does. */
export function toTurns(messages: MessageShape[]): Turn[] {
  const turns: Turn[] = [];
  let openCalls: OpenCalls = new Map();
  for (const message of messages) {
    let turn = turns.at(-1);
    const isAnswer = turn?.asked && turn.runId === null && turn.items.length === 0;
    const goesOn = isAnswer || turn?.runId === message.run_id || message.source === "preloaded";
    if (message.role === "user" || !turn || !goesOn) {
      turn = {
        ...EMPTY,
        key: message.id,
        runId: message.run_id,
        asked: message.role === "user" ? message : null,
        items: [],
        supersededBy: message.superseded_by ?? null,
      };
      turns.push(turn);
      openCalls = new Map();
    }
    turn.runId ??= message.run_id;
    if (message.role === "user" || message.role === "assistant") turn.count += 1;
    if (message.role !== "user") addSaved(turn, message, openCalls);
  }
  return withVersions(withKeys(turns));
}

/** Put turns that were replaced into the turn that replaced them. */
function withVersions(turns: Turn[]): Turn[] {
  const shown: Turn[] = [];
  let versions: Turn[][] = [];
  for (const turn of turns) {
    if (turn.supersededBy === null) {
      shown.push({ ...turn, versions });
      versions = [];
    } else if (versions.at(-1)?.[0]?.supersededBy === turn.supersededBy) versions.at(-1)?.push(turn);
    else versions.push([turn]);
  }
  return shown;
}

/** Key turns by their run, so that a turn is not rendered again from scratch when its message is saved. */
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

/** Say whether a turn has a message: as its question, in its answer, or in an earlier version of it. */
export function hasMessage({ asked, items, versions }: Turn, id: string): boolean {
  if (asked?.id === id || items.some((item) => item.kind === "text" && item.messageId === id)) return true;
  return versions.flat().some((turn) => hasMessage(turn, id));
}

type OpenCalls = Map<string, { tool: Tool; at: number }>;

function addSaved(turn: Turn, message: MessageShape, openCalls: OpenCalls): void {
  if (message.subagent) {
    const { id, role } = message.subagent;
    const host = turn.items.findLast((item) => item.kind === "tool" && item.callId === id);
    if (host?.kind === "tool") addStep(host.inner, { ...message, role }, openCalls, `${id}.`);
    return;
  }
  turn.isCutOff ||= message.is_cut_off ?? false;
  addStep(turn.items, message, openCalls);
}

/** Add a saved step. `within` marks the calls of a subagent, which may have the same ids as others. */
function addStep(items: Item[], message: MessageShape, openCalls: OpenCalls, within = ""): void {
  const at = Date.parse(message.created_at);
  if (message.role === "plan") {
    items.push({ kind: "plan", text: message.content });
    return;
  }
  if (message.role === "summary") {
    items.push({ kind: "note", text: "Earlier messages were summarised for the model. Nothing is lost here." });
    return;
  }
  if (message.role === "notice" && (message.note === "hook" || message.note === "preloaded")) {
    items.push({ kind: "data", from: message.note, text: message.content });
    return;
  }
  if (message.role === "notice") {
    items.push({ kind: "note", text: serverNote(message.note) });
    return;
  }
  if (message.role === "tool") {
    const saved = (message.tool ?? {}) as {
      call_id?: string;
      tool?: string;
      args?: Record<string, unknown>;
      success?: boolean;
      metadata?: Record<string, unknown>;
    };
    const open = openCalls.get(within + (saved.call_id ?? ""));
    const tool = open?.tool ?? newTool(saved.call_id ?? message.id, saved.tool ?? "tool", saved.args ?? {});
    if (!open) items.push(tool);
    tool.result = message.content;
    tool.success = saved.success ?? null;
    tool.metadata = saved.metadata ?? {};
    tool.seconds = open ? Math.max(0, at - open.at) / 1000 : null;
    // Calls of one reply are made one after the other, so the next begins where this one ended.
    for (const other of openCalls.values()) other.at = Math.max(other.at, at);
    return;
  }
  if (message.thinking) items.push({ kind: "thinking", text: message.thinking, isRunning: false });
  if (message.role !== "assistant") return; // only for the model: a subagent's task, reasoning while planning
  if (message.note) {
    items.push({ kind: "note", text: NOTES[message.note] ?? message.content });
    return;
  }
  if (message.content) items.push({ kind: "text", text: message.content, isRunning: false, messageId: message.id });
  if (message.remark) items.push({ kind: "note", text: SERVER_NOTES[message.remark] });
  for (const call of message.tool_calls ?? []) {
    const { call_id, tool, args } = call as { call_id: string; tool: string; args: Record<string, unknown> };
    const item = newTool(call_id, tool, args ?? {});
    items.push(item);
    openCalls.set(within + call_id, { tool: item, at });
  }
}

/** Return the saved items that were already shown when a crash cut a run off; later attempts may have saved more. */
export function savedPart(said: Item[], saved: Item[]): Item[] {
  let place = 0;
  const isOfLater = (item: Item) => {
    if (item.kind === "note") return false; // written by the server, so its text differs
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
