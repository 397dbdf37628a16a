/** The plan of a run. Steps are ticked off when the agent says that they are done, with the tool `finish_step`. */

import { useState } from "react";
import { Markdown } from "../../../../components/text/Markdown";
import { Icon } from "../../../../components/ui/Icon";
import type { Item } from "../items";
import "./PlanCard.css";

const FINISH_STEP = "finish_step";

/** Say whether an item only ticks off a step, which the plan shows. */
export function isTick(item: Item): boolean {
  return item.kind === "tool" && item.tool === FINISH_STEP && item.success !== false && item.approval !== "asked";
}

/** Return the numbers of the steps that are done. */
export function finishedSteps(items: Item[]): ReadonlySet<number> {
  return new Set(
    items.flatMap((item) =>
      item.kind === "tool" && isTick(item) && item.success === true && typeof item.args.step === "number"
        ? [item.args.step]
        : [],
    ),
  );
}

export function PlanCard({ text, done }: { text: string; done: ReadonlySet<number> }) {
  const [isOpen, setOpen] = useState(true);
  const steps = text.split("\n").map((line) => line.replace(/^\d+\.\s*/, ""));
  const count = steps.filter((_, index) => done.has(index + 1)).length;
  return (
    <section className="card plan" aria-label="Plan">
      <button type="button" className="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name="plan" size={15} />
        Plan
        {count > 0 && (
          <span className="muted small">
            {count} of {steps.length} done
          </span>
        )}
        <Icon name="chevron" size={14} />
      </button>
      {isOpen && (
        <ol className="plan-steps">
          {steps.map((step, index) => (
            <li key={index} className={done.has(index + 1) ? "is-done" : undefined}>
              <span className="tick">{done.has(index + 1) && <Icon name="check" size={13} />}</span>
              <Markdown text={step} />
              {done.has(index + 1) && <span className="hidden">done</span>}
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}
