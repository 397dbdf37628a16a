/** The parts of an answer. */

import { memo, useState } from "react";
import { Markdown } from "../../../components/text/Markdown";
import { duration, useNow } from "../../../components/text/times";
import { Icon } from "../../../components/ui/Icon";
import type { Item, Plan, Planning, Text, Thinking, Wait } from "./items";
import { finishedSteps, isTick, PlanCard } from "./tools/PlanCard";
import { kindOf } from "./tools/parse";
import { SubagentCard } from "./tools/SubagentCard";
import { ToolCard } from "./tools/ToolCard";
import "./Items.css";

export function Items({ items }: { items: Item[] }) {
  const done = finishedSteps(items);
  return items.map((item, index) =>
    item.kind === "plan" ? (
      <PlanCard key={index} text={item.text} done={done} />
    ) : (
      !isTick(item) && <OneItem key={index} item={item} number={numberOf(items, index)} />
    ),
  );
}

/** Return how many calls of the same tool there are up to this item: it tells equal cards apart. */
function numberOf(items: Item[], index: number): number {
  const item = items[index];
  if (item?.kind !== "tool") return 0;
  return items.slice(0, index + 1).filter((each) => each.kind === "tool" && each.tool === item.tool).length;
}

const OneItem = memo(function OneItem({ item, number }: { item: Exclude<Item, Plan>; number: number }) {
  switch (item.kind) {
    case "thinking":
      return <ThinkingBlock item={item} />;
    case "text":
      return <TextBlock item={item} />;
    case "planning":
      return <PlanningLine item={item} />;
    case "wait":
      return <WaitLine item={item} />;
    case "note":
      return <p className="note-line">{item.text}</p>;
    case "data":
      return (
        <details className="hook-data">
          <summary>
            {item.from === "hook" ? "What the hook received" : "What the agent wrote when it scheduled this session"}
          </summary>
          <pre tabIndex={0}>{item.text}</pre>
        </details>
      );
    case "tool":
      return kindOf(item.tool) === "subagent" ? (
        <SubagentCard item={item} number={number} renderSteps={(steps) => <Items items={steps} />} />
      ) : (
        <ToolCard item={item} number={number} />
      );
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
