/** A tool call: its name, its main argument and its outcome; the result when opened, and raw JSON one click further. */

import { type ReactNode, useContext, useEffect, useState } from "react";
import { ApprovalForm } from "../../../../components/approvals/ApprovalForm";
import { CopyButton } from "../../../../components/text/CodeBlock";
import { took, useNow } from "../../../../components/text/times";
import { Icon } from "../../../../components/ui/Icon";
import { RunOfItems } from "../contexts";
import type { Tool } from "../items";
import { clip, errorOf, mainArgument, pretty } from "./parse";
import { type Drawing, drawResult } from "./results";
import "./ToolCard.css";

/** The state of a call: one word for each. */
export type CallState = "asked" | "refused" | "failed" | "running" | "unanswered" | "done";

export function stateOf(item: Tool): CallState {
  if (item.approval === "asked" && item.isRunning) return "asked";
  if (item.approval === "refused" || item.metadata.code === "denied") return "refused";
  if (item.success === false) return "failed";
  if (item.isRunning) return "running";
  return item.result === null ? "unanswered" : "done";
}

const BADGES: Partial<Record<CallState, [tone: string, text: string]>> = {
  asked: ["wait", "Needs approval"],
  refused: ["calm", "Refused"],
  failed: ["bad", "Failed"],
  unanswered: ["calm", "No answer"],
};

export function ToolCard({ item, number }: { item: Tool; number: number }) {
  const [isOpen, setOpen] = useState(false);
  const state = stateOf(item);
  const drawing = drawResult(item);
  return (
    <div className={`card tool is-${state}`} role="group" aria-label={nameOf(item, number)}>
      <button type="button" className="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name={state === "failed" ? "alert" : "tool"} size={15} />
        <code className="tool-name">{item.tool}</code>
        <span className="gist">{mainArgument(item.args)}</span>
        {drawing?.gist && <span className="muted small">{drawing.gist}</span>}
        <StateBadge state={state} />
        <Duration item={item} state={state} />
        <Icon name="chevron" size={14} />
      </button>
      {state === "failed" && !isOpen && <p className="tool-error">{clip(errorOf(item), 300)}</p>}
      {drawing?.brief}
      {isOpen && <ToolDetail item={item} drawing={drawing} />}
      <Question item={item} state={state} />
    </div>
  );
}

/** The form for a call that waits for approval. */
export function Question({ item, state }: { item: Tool; state: CallState }): ReactNode {
  const runId = useContext(RunOfItems);
  const { callId, tool, sentence, shown } = item;
  if (state !== "asked" || runId === null || shown === null) return null;
  return <ApprovalForm runId={runId} callId={callId} tool={tool} sentence={sentence} shown={shown} />;
}

export function StateBadge({ state }: { state: CallState }) {
  const badge = BADGES[state];
  return badge && <span className={`badge ${badge[0]}`}>{badge[1]}</span>;
}

export function Duration({ item, state }: { item: Tool; state: CallState }) {
  if (state === "running") return <Elapsed since={item.startedAt} />;
  return item.seconds !== null && state !== "asked" && <span className="muted small">{took(item.seconds)}</span>;
}

function ToolDetail({ item, drawing }: { item: Tool; drawing: Drawing | null }) {
  const isDrawn = Boolean(drawing?.body ?? drawing?.brief);
  return (
    <div className="tool-detail">
      {drawing?.body}
      {isDrawn ? <Raw item={item} /> : <RawParts item={item} />}
    </div>
  );
}

/** The arguments and the result as they were sent, folded. */
export function Raw({ item }: { item: Tool }) {
  return (
    <details className="raw">
      <summary>Raw JSON</summary>
      <RawParts item={item} />
    </details>
  );
}

function RawParts({ item }: { item: Tool }) {
  const args = JSON.stringify(item.args, null, 2);
  return (
    <>
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
    </>
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

/** Return a name that tells the card apart from others of the same tool. */
export function nameOf(item: Tool, number: number): string {
  const gist = mainArgument(item.args);
  return `Tool ${item.tool}${gist && `: ${gist}`}${number > 1 ? `, call ${number}` : ""}`;
}
