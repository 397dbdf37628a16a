/** The parts of an answer. */

import { createContext, memo, useContext, useEffect, useState } from "react";
import { call } from "../../../api/client";
import { useAct } from "../../../api/queries";
import { MAX_LENGTH } from "../../../api/server.generated";
import { CopyButton } from "../../../components/text/CodeBlock";
import { Markdown } from "../../../components/text/Markdown";
import { duration, took, useNow } from "../../../components/text/times";
import { ErrorText } from "../../../components/ui/ErrorText";
import { Icon } from "../../../components/ui/Icon";
import type { Item, Plan, Planning, Text, Thinking, Tool, Wait } from "./items";
import "./Items.css";

/** The id of the run whose items these are, for answering approvals. */
export const RunOfItems = createContext<string | null>(null);

export function Items({ items }: { items: Item[] }) {
  return items.map((item, index) => <OneItem key={index} item={item} number={numberOf(items, index)} />);
}

/** Return how many calls of the same tool there are up to this item: it tells equal cards apart. */
function numberOf(items: Item[], index: number): number {
  const item = items[index];
  if (item?.kind !== "tool") return 0;
  return items.slice(0, index + 1).filter((each) => each.kind === "tool" && each.tool === item.tool).length;
}

const OneItem = memo(function OneItem({ item, number }: { item: Item; number: number }) {
  switch (item.kind) {
    case "thinking":
      return <ThinkingBlock item={item} />;
    case "text":
      return <TextBlock item={item} />;
    case "plan":
      return <PlanCard item={item} />;
    case "planning":
      return <PlanningLine item={item} />;
    case "wait":
      return <WaitLine item={item} />;
    case "note":
      return <p className="note-line">{item.text}</p>;
    case "tool":
      return <ToolCard item={item} number={number} />;
  }
});

/** Reasoning: open while it streams and collapsed afterwards, unless the user has opened or closed it. */
function ThinkingBlock({ item }: { item: Thinking }) {
  const [choice, setChoice] = useState<boolean | null>(null);
  const isOpen = choice ?? item.isRunning;
  return (
    <section className="thinking">
      <button type="button" className="fold" aria-expanded={isOpen} onClick={() => setChoice(!isOpen)}>
        <Icon name="thought" size={15} />
        {item.isRunning ? <span className="shimmer">Thinking</span> : "Thought"}
        <Icon name="chevron" size={14} />
      </button>
      {isOpen && (
        <div className="thinking-text">
          <Markdown text={item.text} isGrowing={item.isRunning} />
        </div>
      )}
    </section>
  );
}

function TextBlock({ item }: { item: Text }) {
  return (
    <div className={item.isRunning ? "answer is-running" : "answer"} data-message={item.messageId}>
      <Markdown text={item.text} isGrowing={item.isRunning} />
    </div>
  );
}

function PlanCard({ item }: { item: Plan }) {
  const [isOpen, setOpen] = useState(true);
  return (
    <section className="card plan" aria-label="Plan">
      <button type="button" className="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name="plan" size={15} />
        Plan
        <Icon name="chevron" size={14} />
      </button>
      {isOpen && <Markdown text={item.text} />}
    </section>
  );
}

const PHASES = ["Analysis", "Reflection", "Plan"];

function PlanningLine({ item }: { item: Planning }) {
  return (
    <p className="note-line" role="status">
      <span className="shimmer">{item.label || PHASES[item.phase - 1]}</span>
      <span className="steps" aria-hidden="true">
        {PHASES.map((phase, index) => (
          <i key={phase} className={index < item.phase ? "is-done" : ""} />
        ))}
      </span>
    </p>
  );
}

const WAITED_FOR = { model: "Waiting for the model", mcp_server: "Waiting for an MCP server" };

/** The reason of a wait. Screen readers skip the countdown, or they would read each second. */
function WaitLine({ item }: { item: Wait }) {
  return (
    <p className="note-line is-wait">
      <span className="shimmer">
        {item.isRetried ? "Trying again" : WAITED_FOR[item.on]}
        {item.retryAt !== null && <Countdown to={item.retryAt} />}:
      </span>{" "}
      <span role="status">{item.reason}</span>
    </p>
  );
}

function Countdown({ to }: { to: number }) {
  const left = Math.ceil((to - useNow(1)) / 1000);
  return left > 0 && <span aria-hidden="true"> in {duration(left)}</span>;
}

/** A tool call: name and main argument, and all details when opened. The error of a failed call is always shown. */
function ToolCard({ item, number }: { item: Tool; number: number }) {
  const { isRunning } = item;
  const isUnanswered = item.result === null && !isRunning;
  const [choice, setChoice] = useState<boolean | null>(null);
  const isOpen = choice ?? (item.inner.length > 0 || item.approval === "asked");
  const state = item.success === false ? "failed" : isRunning ? "running" : isUnanswered ? "unanswered" : "done";
  return (
    <div className={`card tool is-${state}`} role="group" aria-label={nameOf(item, number)}>
      <button type="button" className="fold" aria-expanded={isOpen} onClick={() => setChoice(!isOpen)}>
        <Icon name={state === "failed" ? "alert" : "tool"} size={15} />
        <code className="tool-name">{item.tool}</code>
        <span className="gist">{mainArgument(item.args)}</span>
        {state === "failed" && <span className="badge bad">failed</span>}
        {item.approval && item.isRunning && (
          <span className="badge wait">{item.approval === "asked" ? "needs approval" : item.approval}</span>
        )}
        {item.approval === "asked" && isRunning ? null : isRunning ? (
          <Elapsed since={item.startedAt} />
        ) : (
          item.seconds !== null && <span className="muted small">{took(item.seconds)}</span>
        )}
        <Icon name="chevron" size={14} />
      </button>
      {state === "failed" && !isOpen && <p className="tool-error">{clip(item.result ?? "", 300)}</p>}
      {item.inner.length > 0 && isOpen && (
        <div className="inner" role="group" aria-label="Steps of the subagent">
          <Items items={item.inner} />
        </div>
      )}
      {isOpen && <ToolDetail item={item} />}
      {item.approval === "asked" && item.isRunning && <ApprovalForm callId={item.callId} />}
    </div>
  );
}

/** Asks for approval of a tool call, with an optional reason. */
function ApprovalForm({ callId }: { callId: string }) {
  const runId = useContext(RunOfItems);
  const [note, setNote] = useState("");
  const answer = useAct(
    (approve: boolean) =>
      call("POST /runs/{run_id}/approvals/{call_id}", {
        path: { run_id: runId ?? "", call_id: callId },
        body: { approve, note: note.trim() || null },
      }),
    [],
  );
  const isSent = answer.isPending || answer.isSuccess;
  if (runId === null) return null;
  return (
    <div className="approval" role="group" aria-label="Approve this?">
      <input
        value={note}
        maxLength={MAX_LENGTH.Answer.note}
        placeholder="Reason (optional, the agent sees it)"
        aria-label="Reason"
        onChange={(event) => setNote(event.target.value)}
      />
      <button type="button" disabled={isSent} onClick={() => answer.mutate(false)}>
        Refuse
      </button>
      <button type="button" className="primary" disabled={isSent} onClick={() => answer.mutate(true)}>
        Approve
      </button>
      <ErrorText error={answer.error} />
    </div>
  );
}

function ToolDetail({ item }: { item: Tool }) {
  const args = JSON.stringify(item.args, null, 2);
  return (
    <div className="tool-detail">
      <div className="labelled">
        <span>Arguments</span>
        <CopyButton text={args} />
      </div>
      <pre tabIndex={0}>{args}</pre>
      {item.result !== null && (
        <>
          <div className="labelled">
            <span>{item.success === false ? "Error" : "Result"}</span>
            <CopyButton text={item.result} />
          </div>
          <pre tabIndex={0}>{pretty(item.result)}</pre>
        </>
      )}
    </div>
  );
}

function Elapsed({ since }: { since: number | null }) {
  const now = useNow(1);
  const [isLong, setLong] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLong(true), 1000);
    return () => clearTimeout(timer);
  }, []);
  return (
    <span className="muted small">
      <span className="shimmer">
        {isLong && since !== null ? took(Math.max(1, Math.round((now - since) / 1000))) : "working"}
      </span>
    </span>
  );
}

function nameOf(item: Tool, number: number): string {
  const gist = mainArgument(item.args);
  return `Tool ${item.tool}${gist && `: ${gist}`}${number > 1 ? `, call ${number}` : ""}`;
}

/** Return the argument that best summarises a call, shortened. */
function mainArgument(args: Record<string, unknown>): string {
  const telling = [
    "path",
    "url",
    "query",
    "pattern",
    "command",
    "sql",
    "table",
    "name",
    "when",
    "title",
    "message",
    "op",
    "action",
  ];
  const values = telling.map((name) => args[name]).filter((value) => typeof value === "string");
  const first = values[0] ?? Object.values(args).find((value) => typeof value === "string");
  return typeof first === "string" ? clip(first.replace(/\s+/g, " "), 80) : "";
}

function clip(text: string, max: number): string {
  return text.length > max ? `${text.slice(0, max)}…` : text;
}

function pretty(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
