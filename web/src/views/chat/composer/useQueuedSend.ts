import { useEffect, useRef, useState } from "react";
import { ApiError, explain } from "../../../api/client";

interface Options {
  isReady: boolean; // there is something to send
  isBusy: boolean; // a run of the session is in progress
  endedCount: number;
  send: () => Promise<void>;
}

/** Send a message now, or when the session's run has ended. */
export function useQueuedSend({ isReady, isBusy, endedCount, send: sendNow }: Options) {
  const [isQueued, setQueued] = useState(false);
  const [isSending, setSending] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const waitsFor = useRef(0); // the count of ended runs that a queued message waits for

  const send = async () => {
    if (!isReady || isSending) return;
    if (isBusy) {
      waitsFor.current = 0;
      setQueued(true);
      return;
    }
    setSending(true);
    setQueued(false);
    setProblem(null);
    try {
      await sendNow();
    } catch (error) {
      if (error instanceof ApiError && error.code === "session_busy") {
        // Another window was first; send this message when that run has ended.
        waitsFor.current = endedCount + 1;
        setQueued(true);
      } else setProblem(explain(error));
    } finally {
      setSending(false);
    }
  };

  const latest = useRef(send);
  latest.current = send;
  useEffect(() => {
    if (isQueued && !isBusy && endedCount >= waitsFor.current) void latest.current();
  }, [isQueued, isBusy, endedCount]);

  return { send, canSend: isReady && !isSending && !isQueued, isQueued, unqueue: () => setQueued(false), problem };
}
