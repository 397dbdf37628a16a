/** The scrolling list of turns: shows the latest, or those around a message, more on scrolling, and follows the end. */

import { type ReactNode, useRef } from "react";
import { Icon } from "../../../components/ui/Icon";
import { WantedMessage } from "./contexts";
import { useFollowEnd, useKeepPlace, useNear, useShowMessage, useShownTurns } from "./scrolling/scrolling";
import { hasMessage, type Turn } from "./turns";
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
  const bottom = useRef<HTMLDivElement>(null);
  const place = wanted === null ? -1 : turns.findIndex((turn) => hasMessage(turn, wanted));
  const { first, last, ...part } = useShownTurns(turns.length, place);
  const end = useFollowEnd(box, content, part, turns.at(-1)?.asked?.id === "pending");
  useNear(box, top, first, part.showEarlier);
  useNear(box, bottom, last, part.showLater);
  useKeepPlace(box, content, first, end.follows);
  useShowMessage(box, wanted, place >= first && place < last, end.follows, onShown);
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
          {first > 0 && (
            <div ref={top} className="note-line">
              Earlier messages
            </div>
          )}
          <WantedMessage value={wanted}>{turns.slice(first, last).map(children)}</WantedMessage>
          {last < turns.length && (
            <div ref={bottom} className="note-line">
              Later messages
            </div>
          )}
        </div>
      </div>
      {(end.isAway || !part.isLatest) && (
        <button type="button" className="to-end" onClick={() => end.scrollToEnd(true)} aria-label="Scroll to the end">
          <Icon name="down2" size={16} />
        </button>
      )}
    </div>
  );
}

function EmptyChat() {
  return (
    <div className="empty">
      <p>Send a message to begin. “What can you do?” is a good start.</p>
    </div>
  );
}
