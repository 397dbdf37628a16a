/** Buttons at a message or an answer: copy, quote, edit, try again. */

import { useRef } from "react";
import { useQuickAct } from "../../../../api/queries";
import type { MessageShape } from "../../../../api/rest.generated";
import { CopyButton } from "../../../../components/text/CodeBlock";
import { Icon } from "../../../../components/ui/Icon";
import type { Item } from "../items";
import "./MessageActions.css";

export interface Actions {
  quote: (text: string) => void;
  retry: (message: MessageShape, content: string | null) => Promise<void>;
}

interface Props {
  of: "message" | "answer";
  text: string; // as Markdown
  actions: Actions;
  onEdit?: (() => void) | null;
  onRetry?: (() => Promise<void>) | null;
}

export function MessageActions({ of, text, actions, onEdit, onRetry }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const retry = useQuickAct(async () => onRetry?.(), [["runs"]]);
  return (
    <div ref={place} className={`message-actions is-${of}`} role="group" aria-label={`Actions of this ${of}`}>
      {text && <CopyButton text={text} />}
      {text && (
        <button
          type="button"
          className="quiet small"
          title="Quote it in your message; select a part to quote only that"
          onClick={() => actions.quote(selectedIn(place.current?.closest(".turn")) || text)}
        >
          <Icon name="quote" size={14} />
          Quote
        </button>
      )}
      {onEdit && (
        <button type="button" className="quiet small" aria-label="Edit your message" onClick={onEdit}>
          <Icon name="edit" size={14} />
          Edit
        </button>
      )}
      {onRetry && (
        <button
          type="button"
          className="quiet small"
          title="Answer again. This answer stays readable, and what tools did stays done."
          disabled={retry.isPending}
          onClick={() => retry.mutate(undefined)}
        >
          <Icon name="retry" size={14} />
          Try again
        </button>
      )}
    </div>
  );
}

/** Return the text that is selected within an element. */
function selectedIn(element: Element | null | undefined): string {
  const selection = getSelection();
  const isWithin = selection?.anchorNode && element?.contains(selection.anchorNode);
  return isWithin ? selection.toString() : "";
}

/** Return the text of an answer as the model wrote it. */
export function answerText(items: Item[]): string {
  return items
    .flatMap((item) => (item.kind === "text" ? [item.text.trim()] : []))
    .join("\n\n")
    .trim();
}

/** Say whether a person wrote a message; others are of wakes or were loaded by a schedule. */
export function isOfPerson(message: MessageShape): boolean {
  return !message.is_recall && message.source === null && message.wake_id === null;
}
