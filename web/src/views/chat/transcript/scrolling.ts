/** Scrolling of the transcript. */

import {
  type RefObject,
  startTransition,
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";

type Box = RefObject<HTMLDivElement | null>;

const NEAR_END = 60; // pixels

/** Keep the end in view while text is added, unless the reader has scrolled up. */
export function useFollowEnd(box: Box, content: Box, hasOwnMessage: boolean) {
  const follows = useRef(true);
  const lastTop = useRef(0);
  const height = useRef(0); // of the whole content when it was last rendered
  const [isAway, setAway] = useState(false);

  const scrollToEnd = useCallback(
    (isSmooth = false) => {
      const element = box.current;
      element?.scrollTo({ top: element.scrollHeight, behavior: isSmooth ? "smooth" : "instant" });
    },
    [box],
  );

  useLayoutEffect(() => {
    scrollToEnd();
    const observer = new ResizeObserver(() => {
      height.current = box.current?.scrollHeight ?? 0;
      if (follows.current) scrollToEnd();
    });
    if (content.current) observer.observe(content.current);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, [box, content, scrollToEnd]);

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
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_END;
    if (isAtEnd) follows.current = true;
    else if (element.scrollTop < lastTop.current) follows.current = false;
    lastTop.current = element.scrollTop;
    setAway(!isAtEnd && !follows.current);
  }, [box]);

  return useMemo(() => ({ follows, height, isAway, scrollToEnd, onScroll }), [isAway, scrollToEnd, onScroll]);
}

const FIRST_SHOWN = 16;
const MORE_SHOWN = 4; // about as many as can be rendered within one frame

/** Return how many of the latest turns to show: at least a number, and more as the reader comes near the first. */
export function useEarlierTurns(
  box: Box,
  top: Box,
  total: number,
  least: number,
  { follows, height }: { follows: RefObject<boolean>; height: RefObject<number> },
): number {
  const [count, setCount] = useState(FIRST_SHOWN);
  if (least > count) setCount(least);

  useEffect(() => {
    const mark = top.current;
    if (!mark || count >= total) return;
    const observer = new IntersectionObserver(
      ([entry]) => {
        if (!entry?.isIntersecting) return;
        startTransition(() => setCount((before) => before + MORE_SHOWN)); // scrolling has priority
      },
      { root: box.current, rootMargin: "2400px 0px 0px" },
    );
    observer.observe(mark);
    return () => observer.disconnect();
  }, [box, top, count, total]);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element || count === FIRST_SHOWN || follows.current) return;
    element.scrollTop += element.scrollHeight - height.current; // keep the visible part in place
  }, [box, count, follows, height]);

  return count;
}

const MARKED_MS = 2_500;

/** Scroll to a message that was searched for, focus it, and mark it for a moment. */
export function useShowMessage(
  box: Box,
  messageId: string | null,
  isLoaded: boolean,
  follows: RefObject<boolean>,
  onShown: () => void,
) {
  const unmark = useRef(() => {});
  useEffect(() => {
    if (messageId === null || !isLoaded) return;
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
  }, [box, messageId, isLoaded, follows, onShown]);
}
