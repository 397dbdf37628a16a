/** Sending a person's message, and showing it until the saved transcript has it. */

import { useCallback, useState } from "react";
import { call, type Uploaded } from "../../api/client";
import { queryClient, session as sessionQuery } from "../../api/queries";
import type { MessageShape, RunShape, SessionDetail } from "../../api/rest.generated";
import type { PendingMessage } from "./transcript/turns";

export interface OutgoingMessage {
  content: string;
  images: string[]; // data URLs
  files: Uploaded[];
}

/** Send a message; return the id of the run that answers it. */
export async function sendMessage(sessionId: string, { content, images, files }: OutgoingMessage): Promise<string> {
  const body = { content, images: images.length ? images : null, files: files.length ? files : null };
  const taken = await call("POST /sessions/{session_id}/messages", { path: { session_id: sessionId }, body });
  return taken.run_id;
}

export function usePendingMessage(session: SessionDetail) {
  const [pending, setPending] = useState<PendingMessage | null>(null);
  const savedBefore = session.messages.length;
  const send = useCallback(
    async (outgoing: OutgoingMessage) => {
      const message = toMessage(outgoing);
      setPending({ runId: null, message, savedBefore });
      try {
        setPending({ runId: await sendMessage(session.id, outgoing), message, savedBefore });
      } catch (error) {
        setPending(null);
        throw error;
      }
    },
    [session.id, savedBefore],
  );
  const retry = useCallback(
    async (message: MessageShape, content: string | null) => {
      const path = { session_id: session.id, message_id: message.id };
      const { run_id: runId } = await call("POST /sessions/{session_id}/messages/{message_id}/retry", {
        path,
        body: { content },
      });
      await queryClient.refetchQueries({ queryKey: sessionQuery(session.id).queryKey });
      setPending({ runId, message: { ...message, content: content ?? message.content }, savedBefore });
    },
    [session.id, savedBefore],
  );
  return { pending, send, retry };
}

/** Say whether the run that answers a message has ended. */
export function hasEnded(
  { runId }: PendingMessage,
  runs: RunShape[] | undefined,
  endedIds: readonly string[],
): boolean {
  if (runId === null) return false;
  return endedIds.includes(runId) || (runs ?? []).some((run) => run.id === runId && run.finished_at !== null);
}

function toMessage({ content, images, files }: OutgoingMessage): MessageShape {
  return {
    id: "pending",
    index: -1,
    role: "user",
    content,
    created_at: new Date().toISOString(),
    run_id: null,
    is_recall: false,
    source: null,
    wake_id: null,
    label: null,
    images: images.length ? images.map((src) => ({ src })) : null,
    files: files.length ? files.map(({ name, path }) => ({ name, path })) : null,
  };
}
