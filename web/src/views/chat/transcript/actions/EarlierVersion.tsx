/** Messages that a retry or an edit replaced, folded. The model no longer reads them. */

import { type ReactNode, useContext, useState } from "react";
import { Icon } from "../../../../components/ui/Icon";
import { WantedMessage } from "../contexts";
import { hasMessage, type Turn } from "../turns";
import "./EarlierVersion.css";

export function EarlierVersion({ turns, children }: { turns: Turn[]; children: (turn: Turn) => ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  const wanted = useContext(WantedMessage);
  if (wanted !== null && !isOpen && turns.some((turn) => hasMessage(turn, wanted))) setOpen(true);
  const count = turns.reduce((sum, turn) => sum + turn.count, 0);
  return (
    <section className="earlier-version" aria-label="Earlier version">
      <button type="button" className="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name="clock" size={14} />
        Earlier version ({count === 1 ? "1 message" : `${count} messages`})
        <Icon name="chevron" size={14} />
      </button>
      {isOpen && (
        <div className="earlier-turns">
          {turns.some(hasTools) && <p className="muted small">What its tools did stays done.</p>}
          {turns.map(children)}
        </div>
      )}
    </section>
  );
}

export function hasTools(turn: Turn): boolean {
  return turn.items.some((item) => item.kind === "tool");
}
