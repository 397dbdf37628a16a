/** Scrolling of the transcript. */

import { type RefObject, startTransition, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { earlier, later, latest, withTurn } from "./window";

type Box = RefObject<HTMLDivElement | null>;

const NEAR_END = 60; // pixels

/** Keep the end in view while text is added, unless the reader has scrolled up. */
export function useFollowEnd(
  box: Box,
  content: Box,
  { isLatest, showLatest }: Pick<ShownTurns, "isLatest" | "showLatest">,
  hasOwnMessage: boolean,
) {
  const follows = useRef(true);
  const lastTop = useRef(0);
  const [isAway, setAway] = useState(false);

  const scrollDown = useCallback(
    (isSmooth = false) => {
      const element = box.current;
      element?.scrollTo({ top: element.scrollHeight, behavior: isSmooth ? "smooth" : "instant" });
    },
    [box],
  );

  const scrollToEnd = useCallback(
    (isSmooth = false) => {
      if (isLatest) return scrollDown(isSmooth);
      follows.current = true;
      showLatest();
    },
    [isLatest, scrollDown, showLatest],
  );

  useLayoutEffect(() => {
    if (isLatest && follows.current) scrollDown();
  }, [isLatest, scrollDown]);

  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => follows.current && scrollDown());
    if (content.current) observer.observe(content.current);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, [box, content, scrollDown]);

  useEffect(() => {
    if (!hasOwnMessage) return;
    follows.current = true; // sending a message brings its author back to the end
    setAway(false);
    scrollToEnd();
  }, [hasOwnMessage, scrollToEnd]);

  const onScroll = useCallback(() => {
    const element = box.current;
    if (!element) return;
    // Growing text moves the end away too, so only scrolling up stops following.
    const isAtEnd = isLatest && element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_END;
    if (isAtEnd) follows.current = true;
    else if (element.scrollTop < lastTop.current) follows.current = false;
    lastTop.current = element.scrollTop;
    setAway(!isAtEnd && !follows.current);
  }, [box, isLatest]);

  return { follows, isAway, scrollToEnd, onScroll };
}

export interface ShownTurns {
  first: number;
  last: number; // the first turn that is not rendered
  isLatest: boolean; // it has the latest turn
  showLatest: () => void;
  showEarlier: () => void;
  showLater: () => void;
}

/** Return which turns to render: the latest, or those around a turn that is searched for. */
export function useShownTurns(total: number, place: number): ShownTurns {
  const [{ first, end }, setShown] = useState(() =>
    place < 0 ? latest(total) : withTurn(latest(total), place, total),
  );
  // Not while rendering: React forgets such an update if a transition is pending, as one of those below may be.
  useLayoutEffect(() => {
    if (place >= 0) setShown((before) => withTurn(before, place, total));
  }, [place, total]);
  const showLatest = useCallback(() => setShown(latest(total)), [total]);
  // Scrolling has priority over rendering more.
  const showEarlier = useCallback(() => startTransition(() => setShown(earlier)), []);
  const showLater = useCallback(() => startTransition(() => setShown((before) => later(before, total))), [total]);
  return { first, last: end ?? total, isLatest: end === null, showLatest, showEarlier, showLater };
}

/** Do something when the reader comes near a mark, and again after each change of `version` while they are near. */
export function useNear(box: Box, mark: Box, version: number, onNear: () => void): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new observer says again whether the mark is near
  useEffect(() => {
    if (!mark.current) return;
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && onNear(), {
      root: box.current,
      rootMargin: "2400px 0px",
    });
    observer.observe(mark.current);
    return () => observer.disconnect();
  }, [box, mark, version, onNear]);
}

/** Keep the visible part in place when turns are added above it. */
export function useKeepPlace(box: Box, content: Box, first: number, follows: RefObject<boolean>): void {
  const anchor = useRef<{ turn: HTMLElement; top: number } | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `first` says that turns were added or removed
  useLayoutEffect(() => {
    const before = anchor.current;
    if (box.current && before?.turn.isConnected && !follows.current)
      box.current.scrollTop += before.turn.offsetTop - before.top;
    const turn = content.current?.querySelector<HTMLElement>(":scope > .turn");
    anchor.current = turn ? { turn, top: turn.offsetTop } : null;
  }, [box, content, first, follows]);
}

const MARKED_MS = 2_500;

/** Scroll to a message that was searched for, focus it, and mark it for a moment. */
export function useShowMessage(
  box: Box,
  messageId: string | null,
  isRendered: boolean,
  follows: RefObject<boolean>,
  onShown: () => void,
) {
  const unmark = useRef(() => {});
  useEffect(() => {
    if (messageId === null || !isRendered) return;
    const element = box.current?.querySelector<HTMLElement>(`[data-message="${CSS.escape(messageId)}"]`);
    if (!element) return;
    follows.current = false; // or the next change of the content would scroll to the end
    element.scrollIntoView({ block: "center" });
    element.tabIndex = -1;
    element.focus({ preventScroll: true });
    unmark.current();
    element.classList.add("is-found");
    const timer = setTimeout(() => unmark.current(), MARKED_MS);
    unmark.current = () => {
      clearTimeout(timer);
      element.classList.remove("is-found");
    };
    onShown();
  }, [box, messageId, isRendered, follows, onShown]);
}
