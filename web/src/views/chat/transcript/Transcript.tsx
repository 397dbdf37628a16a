/** The scrolling list of turns: shows the latest, earlier ones on scrolling up, and follows the end. */

import { type ReactNode, useRef } from "react";
import { Icon } from "../../../components/ui/Icon";
import { useEarlierTurns, useFollowEnd, useShowMessage } from "./scrolling";
import type { Turn } from "./turns";
import "./Transcript.css";

interface Props {
  turns: Turn[];
  isReplaying: boolean;
  wanted: string | null; // a message to scroll to
  onShown: () => void; // it is in view
  children: (turn: Turn) => ReactNode;
}

export function Transcript({ turns, isReplaying, wanted, onShown, children }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const top = useRef<HTMLDivElement>(null);
  const end = useFollowEnd(box, content, turns.at(-1)?.asked?.id === "pending");
  const place = wanted === null ? -1 : turns.findIndex((turn) => hasMessage(turn, wanted));
  const count = useEarlierTurns(box, top, turns.length, place < 0 ? 0 : turns.length - place, end);
  useShowMessage(box, wanted, place >= 0, end.follows, onShown);
  return (
    <div className="transcript-frame">
      <div
        ref={box}
        className={isReplaying ? "transcript is-still" : "transcript"}
        onScroll={end.onScroll}
        tabIndex={0}
        role="log"
        aria-label="Conversation"
        aria-live="off"
      >
        <div ref={content} className="transcript-content">
          {turns.length === 0 && <EmptyChat />}
          {count < turns.length && (
            <div ref={top} className="note-line">
              Earlier messages
            </div>
          )}
          {turns.slice(-count).map(children)}
        </div>
      </div>
      {end.isAway && (
        <button type="button" className="to-end" onClick={() => end.scrollToEnd(true)} aria-label="Scroll to the end">
          <Icon name="down2" size={16} />
        </button>
      )}
    </div>
  );
}

function hasMessage({ asked, items }: Turn, id: string): boolean {
  return asked?.id === id || items.some((item) => item.kind === "text" && item.messageId === id);
}

function EmptyChat() {
  return (
    <div className="empty">
      <p>Send a message to begin. “What can you do?” is a good start.</p>
    </div>
  );
}
