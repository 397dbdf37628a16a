/** One notification and its actions. */

import { useQuery } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { Link } from "wouter";
import { call } from "../../api/client";
import * as queries from "../../api/queries";
import type { ActionShape, NotificationShape } from "../../api/rest.generated";
import { WholeCall } from "../../components/approvals/WholeCall";
import { MuteButton } from "../../components/frame/MuteButton";
import { addressOf } from "../../components/frame/noticeAddress";
import { TextWithTimes } from "../../components/text/TextWithTimes";
import { Time } from "../../components/text/times";
import { ErrorText } from "../../components/ui/ErrorText";
import { Icon } from "../../components/ui/Icon";
import { ScheduleDialog } from "../../components/wakes/ScheduleDialog";
import "./InboxEntry.css";

const CHANGES = [["notifications"], ["runs"], ["wakes"], ["sessions"]];

export function InboxEntry({ entry }: { entry: NotificationShape }) {
  const agent = useQuery(queries.agents).data?.find((each) => each.id === entry.agent_id);
  const wake = useQuery(queries.wakes).data?.find((each) => each.id === entry.wake_id); // undefined: not pending
  const [isScheduling, setScheduling] = useState(false);
  const read = queries.useQuickAct(
    () => call("POST /notifications/{notification_id}/read", { path: { notification_id: entry.id } }),
    CHANGES,
  );
  const markRead = () => entry.read_at === null && read.mutate(undefined);
  const again = queries.useAct(
    () => call("POST /runs/{run_id}/again", { path: { run_id: entry.run_id ?? "" } }),
    CHANGES,
    markRead,
  );
  const isLoopEnd = entry.code === "loop_ended" && entry.resolved_at === null;
  return (
    <li className={entry.read_at === null ? "inbox-entry is-unread" : "inbox-entry"}>
      <Link href={addressOf(entry)} className="inbox-link" onClick={markRead}>
        <strong>{entry.title}</strong>
        <span>
          <TextWithTimes text={entry.body} times={entry.times} zone={agent?.zone} />
        </span>
        <span className="muted small">
          {agent && `${agent.name} · `}
          <Time at={entry.created_at} zone={agent?.zone} form="both" />
          {entry.resolved_at && " · resolved: a next run was scheduled"}
        </span>
      </Link>
      <div className="row wrap">
        {isLoopEnd && entry.run_id && (
          <button type="button" className="small" onClick={() => again.mutate(undefined)}>
            Run now
          </button>
        )}
        {entry.code === "wake_failed" && (
          <button type="button" className="small" disabled={again.isPending} onClick={() => again.mutate(undefined)}>
            Run again
          </button>
        )}
        {isLoopEnd && agent && (
          <button type="button" className="small" onClick={() => setScheduling(true)}>
            Schedule again
          </button>
        )}
        {entry.run_id && addressOf(entry) !== `/ui/runs/${entry.run_id}` && (
          <Link className="button small" href={`/ui/runs/${entry.run_id}`} onClick={markRead}>
            Open run
          </Link>
        )}
        {wake && <MuteButton wake={wake} />}
        {entry.read_at === null && (
          <button type="button" className="small quiet" onClick={markRead} aria-label={`Mark “${entry.title}” as read`}>
            <Icon name="check" size={15} />
          </button>
        )}
      </div>
      {entry.actions?.map((action) => (
        <Approve key={action.path} entry={entry} action={action} onDone={markRead} />
      ))}
      <ErrorText error={again.error} />
      {isScheduling && agent && (
        <ScheduleDialog agent={agent} sessionId={null} wake={null} onClose={() => setScheduling(false)} />
      )}
    </li>
  );
}

interface ApproveProps {
  entry: NotificationShape;
  action: ActionShape;
  onDone: () => void;
}

/** A tool call that a scheduled run skipped because it needs approval. */
function Approve({ entry, action, onDone }: ApproveProps) {
  const runId = entry.run_id ?? "";
  const [isSeen, setSeen] = useState(false);
  const see = useCallback(() => setSeen(true), []);
  const callId = decodeURIComponent(action.path.slice(action.path.lastIndexOf("/") + 1));
  const asked = useQuery(queries.approvals(runId)).data?.find((each) => each.call_id === callId);
  const answer = queries.useAct(
    (approve: boolean) =>
      call("POST /runs/{run_id}/approvals/{call_id}", { path: { run_id: runId, call_id: callId }, body: { approve } }),
    [...CHANGES, ["approvals", runId]],
    onDone,
  );
  if (!asked) return null;
  const again = answer.data?.run_id;
  return (
    <div className="approve stack">
      <WholeCall tool={asked.tool} sentence={asked.sentence} shown={asked.shown} onSeen={see} />
      {asked.status === "pending" || asked.status === "refused" ? (
        <p className="row">
          <button
            type="button"
            className="small primary"
            disabled={answer.isPending || !isSeen}
            onClick={() => answer.mutate(true)}
          >
            {action.label}
          </button>
          <button type="button" className="small" disabled={answer.isPending} onClick={() => answer.mutate(false)}>
            Refuse
          </button>
        </p>
      ) : (
        <p className="muted small" role="status">
          {asked.status === "denied" ? "You refused it." : "You approved it."}{" "}
          {again && <Link href={`/ui/runs/${again}`}>Running again</Link>}
        </p>
      )}
      <ErrorText error={answer.error} />
    </div>
  );
}
