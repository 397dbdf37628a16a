/** A task that was given to another agent: the task, its steps while it works, and its answer, once. */

import { type ReactNode, useState } from "react";
import { Markdown } from "../../../../components/text/Markdown";
import { Icon } from "../../../../components/ui/Icon";
import type { Item, Tool } from "../items";
import { clip, errorOf, textOf } from "./parse";
import { Duration, Question, Raw, StateBadge, stateOf } from "./ToolCard";

interface Props {
  item: Tool;
  number: number;
  renderSteps: (steps: Item[]) => ReactNode;
}

export function SubagentCard({ item, number, renderSteps }: Props) {
  const [choice, setChoice] = useState<boolean | null>(null);
  const state = stateOf(item);
  const isOpen = choice ?? (state === "running" || item.inner.some(isAsking));
  const name = textOf(item.metadata.agent) ?? textOf(item.args.agent) ?? "Subagent";
  const task = textOf(item.args.task) ?? "";
  const steps = withoutAnswer(item);
  return (
    <div className={`card tool subagent is-${state}`} role="group" aria-label={labelOf(name, task, number)}>
      <button type="button" className="fold" aria-expanded={isOpen} onClick={() => setChoice(!isOpen)}>
        <Icon name={state === "failed" ? "alert" : "agent"} size={15} />
        <strong className="tool-name">{name}</strong>
        <span className="gist">{task.replace(/\s+/g, " ")}</span>
        <StateBadge state={state} />
        <Duration item={item} state={state} />
        <Icon name="chevron" size={14} />
      </button>
      {state === "failed" && !isOpen && <p className="tool-error">{clip(errorOf(item), 300)}</p>}
      {isOpen && (
        <div className="tool-detail">
          <p className="plain task-text">{task}</p>
          {steps.length > 0 && (
            <div className="inner" role="group" aria-label={`Steps of ${name}`}>
              {renderSteps(steps)}
            </div>
          )}
          {item.result !== null &&
            (item.success === false ? <p className="bad-text">{errorOf(item)}</p> : <Markdown text={item.result} />)}
          <Raw item={item} />
        </div>
      )}
      <Question item={item} state={state} />
    </div>
  );
}

function labelOf(name: string, task: string, number: number): string {
  return `Subagent ${name}: ${clip(task.replace(/\s+/g, " "), 80)}${number > 1 ? `, task ${number}` : ""}`;
}

function isAsking(item: Item): boolean {
  return item.kind === "tool" && (stateOf(item) === "asked" || item.inner.some(isAsking));
}

/** Return the steps without the final text, which is the result. */
function withoutAnswer({ inner, result }: Tool): Item[] {
  const last = inner.at(-1);
  return last?.kind === "text" && last.text.trim() === result?.trim() ? inner.slice(0, -1) : inner;
}
