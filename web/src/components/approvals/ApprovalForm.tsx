/** Asks for approval of a tool call: in the conversation and in the inbox. */

import { useQuery } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { call } from "../../api/client";
import type { ShownArgument } from "../../api/frames.generated";
import * as queries from "../../api/queries";
import { MAX_LENGTH } from "../../api/server.generated";
import { ErrorText } from "../ui/ErrorText";
import { WholeCall } from "./WholeCall";
import "./ApprovalForm.css";

interface Props {
  runId: string;
  callId: string;
  tool: string;
  sentence: string; // what the call would do, as the server says it
  shown: ShownArgument[];
}

type Reply = { approve: boolean; always?: boolean };

export function ApprovalForm({ runId, callId, tool, sentence, shown }: Props) {
  const [note, setNote] = useState("");
  const [isSeen, setSeen] = useState(false);
  const see = useCallback(() => setSeen(true), []);
  const mayAlways = useQuery(queries.me).data?.scope === "admin";
  const answer = queries.useAct(
    ({ approve, always = false }: Reply) =>
      call("POST /runs/{run_id}/approvals/{call_id}", {
        path: { run_id: runId, call_id: callId },
        body: { approve, always, note: note.trim() || null },
      }),
    [["approvals"], ["agents"]],
  );
  const isSent = answer.isPending || answer.isSuccess;
  return (
    <div className="approval" role="group" aria-label="Approve this?">
      <WholeCall tool={tool} sentence={sentence} shown={shown} onSeen={see} />
      {!isSeen && <p className="muted small">Scroll up to the beginning of the call to approve it.</p>}
      <div className="approval-answers">
        <button
          type="button"
          className="primary"
          disabled={isSent || !isSeen}
          onClick={() => answer.mutate({ approve: true })}
        >
          Approve
        </button>
        {mayAlways && (
          <button
            type="button"
            disabled={isSent || !isSeen}
            title="Scheduled runs in this session may call it too. You can revoke this under Configure of the agent."
            onClick={() => answer.mutate({ approve: true, always: true })}
          >
            Always allow {tool} in this session
          </button>
        )}
        <span className="approval-refusal">
          <input
            value={note}
            maxLength={MAX_LENGTH.Answer.note}
            placeholder="Reason (optional, the agent sees it)"
            aria-label="Reason"
            onChange={(event) => setNote(event.target.value)}
          />
          <button type="button" disabled={isSent} onClick={() => answer.mutate({ approve: false })}>
            Refuse
          </button>
        </span>
      </div>
      <ErrorText error={answer.error} />
    </div>
  );
}
