/** One message and the answer to it. */

import { memo, useState } from "react";
import { Link } from "wouter";
import { call } from "../../../api/client";
import { useAct } from "../../../api/queries";
import type { MessageShape, RunShape, SessionDetail } from "../../../api/rest.generated";
import { canContinue, reasonText } from "../../../components/text/labels";
import { Markdown } from "../../../components/text/Markdown";
import { Time, took } from "../../../components/text/times";
import { ErrorText } from "../../../components/ui/ErrorText";
import { Icon } from "../../../components/ui/Icon";
import type { LiveRun } from "../stream";
import { EarlierVersion } from "./actions/EarlierVersion";
import { EditMessage } from "./actions/EditMessage";
import { type Actions, answerText, isOfPerson, MessageActions } from "./actions/MessageActions";
import { AgentOfItems, RunOfItems } from "./contexts";
import { Items } from "./Items";
import { Picture } from "./Picture";
import type { Turn } from "./turns";
import "./TurnView.css";

interface Props {
  turn: Turn;
  session: SessionDetail;
  actions: Actions | null; // null: an earlier version, which is only read
  canRetry: boolean; // it is the last turn, and no run is in progress
  live: LiveRun | null; // of this turn
  run: RunShape | undefined;
  earlierRuns: RunShape[] | undefined; // the session's runs, if this turn has earlier versions
  zone: string | undefined;
  isLast: boolean;
}

export const TurnView = memo(function TurnView(props: Props) {
  const { turn, session, live, run, zone, isLast, actions, canRetry } = props;
  const [isEditing, setEditing] = useState(false);
  const items = live ? live.items : turn.items;
  const isRunning = live?.status === "running";
  const asked = turn.asked;
  const canReplace = canRetry && asked !== null && asked.id !== "pending" && isOfPerson(asked);
  return (
    <article className="turn">
      {turn.versions.map((version) => (
        <EarlierVersion key={version[0]?.key} turns={version}>
          {(each) => (
            <TurnView
              {...props}
              key={each.key}
              turn={each}
              run={props.earlierRuns?.find((one) => one.id === each.runId)}
              actions={null}
              canRetry={false}
              live={null}
              isLast={false}
            />
          )}
        </EarlierVersion>
      ))}
      {asked && isEditing && canReplace ? (
        <EditMessage message={asked} turn={turn} onSend={actions?.retry} onClose={() => setEditing(false)} />
      ) : (
        asked && <Asked message={asked} sessionId={session.id} zone={zone} />
      )}
      {asked && actions && !isEditing && (
        <MessageActions
          of="message"
          text={asked.content}
          actions={actions}
          onEdit={canReplace ? () => setEditing(true) : null}
        />
      )}
      {(items.length > 0 || isRunning) && (
        <div className="reply" aria-busy={isRunning}>
          <AgentOfItems value={run?.agent_id ?? session.agent_id}>
            <RunOfItems value={turn.runId}>
              <Items items={items} />
            </RunOfItems>
          </AgentOfItems>
          {isRunning && !showsWork(items) && (
            <p className="waiting" role="status">
              <span className="dots" aria-hidden="true">
                <i />
                <i />
                <i />
              </span>
              <span className="hidden">Working</span>
            </p>
          )}
        </div>
      )}
      {!isRunning && (
        <Ending
          turn={turn}
          live={live}
          run={run}
          zone={zone}
          isLast={isLast}
          agentId={run?.agent_id ?? session.agent_id}
          onEdit={canReplace && !isEditing ? () => setEditing(true) : null}
        />
      )}
      {!isRunning && actions && (answerText(items) !== "" || canReplace) && (
        <MessageActions
          of="answer"
          text={answerText(items)}
          actions={actions}
          onRetry={canReplace ? () => actions.retry(asked, null) : null}
        />
      )}
    </article>
  );
});

function showsWork(items: Turn["items"]): boolean {
  const last = items.at(-1);
  if (!last) return false;
  return last.kind === "planning" || last.kind === "wait" || ("isRunning" in last && last.isRunning);
}

/** The message of a person or of a wake; that of a wake is lighter and has a clock. */
function Asked({ message, sessionId, zone }: { message: MessageShape; sessionId: string; zone: string | undefined }) {
  const isWoken = message.is_recall || (message.source !== null && message.source !== "preloaded");
  const who = message.source === "hook" ? "Hook" : isWoken ? "Scheduled run" : "You";
  return (
    <div className={isWoken ? "asked is-woken" : "asked"} data-message={message.id}>
      {isWoken && (
        <p className="woken-by">
          <span className="badge clock">
            <Icon name="clock" size={13} />
            {who}
          </span>
          {message.label && <span className="muted">{message.label}</span>}
          <span className="muted small">
            <Time at={message.created_at} zone={zone} />
          </span>
        </p>
      )}
      {message.source === "preloaded" && (
        <p className="woken-by">
          <span className="badge">Preloaded</span>
          {message.timestamp && (
            <span className="muted small">
              {Number.isNaN(Date.parse(message.timestamp)) ? (
                message.timestamp
              ) : (
                <Time at={message.timestamp} zone={zone} />
              )}
            </span>
          )}
        </p>
      )}
      {message.through && (
        <p className="woken-by">
          <span className="muted small">Sent {message.through}</span>
        </p>
      )}
      <div className="asked-text">
        <h2 className="hidden">{who}: </h2>
        {isWoken ? <Markdown text={message.content} /> : <p className="plain">{message.content}</p>}
        {message.images && <Pictures images={message.images} sessionId={sessionId} />}
        {message.files && (
          <ul className="file-chips" aria-label="Files">
            {message.files.map((file) => (
              <li key={file.path} className="chip" title={file.path}>
                <Icon name="file" size={14} />
                {file.name || file.path}
              </li>
            ))}
          </ul>
        )}
      </div>
    </div>
  );
}

function Pictures({ images, sessionId }: { images: Record<string, string>[]; sessionId: string }) {
  return (
    <div className="pictures">
      {images.map((image, index) => {
        const label = `Picture ${index + 1} of this message`;
        if (image.src) return <img key={index} src={image.src} alt={label} />; // not sent yet
        const address = `/sessions/${encodeURIComponent(sessionId)}/images/${encodeURIComponent(image.id ?? "")}`;
        return <Picture key={image.id ?? index} address={address} label={label} />;
      })}
    </div>
  );
}

const ENDINGS: Record<string, string> = {
  failed: "This run failed.",
  stopped: "This run was stopped.",
  interrupted: "This run was interrupted.",
};

interface EndingProps extends Pick<Props, "turn" | "live" | "run" | "zone" | "isLast"> {
  agentId: string;
  onEdit: (() => void) | null; // null: its message cannot be edited
}

/** The end of a run: its time, or that it failed or was stopped, with a button for what helps. */
function Ending({ turn, live, run, zone, isLast, agentId, onEdit }: EndingProps) {
  const status = live && live.status !== "done" ? live.status : run?.status;
  const message = live?.error?.message ?? run?.error;
  const code = live?.error?.code ?? run?.reason;
  if (status === "failed" || status === "stopped" || status === "interrupted") {
    return (
      <div
        className={status === "stopped" ? "ending" : "ending is-bad"}
        role={status === "stopped" ? undefined : "alert"}
      >
        <p>
          <strong>{ENDINGS[status]}</strong> {message && status !== "stopped" ? message : ""}
        </p>
        <div className="row">
          {isLast && turn.runId && canContinue(code) && <Continue runId={turn.runId} />}
          {isLast && !canContinue(code) && onEdit && (
            <button type="button" className="small" onClick={onEdit}>
              <Icon name="edit" size={14} />
              Edit the message
            </button>
          )}
          {isLast && !canContinue(code) && (
            <Link className="button small" href={`/ui/agents/${agentId}/configure#model`}>
              Choose another model
            </Link>
          )}
          {turn.runId && <Link href={`/ui/runs/${turn.runId}`}>Details</Link>}
        </div>
      </div>
    );
  }
  if (!turn.runId || !run?.finished_at || !run.started_at) return null;
  const seconds = (Date.parse(run.finished_at) - Date.parse(run.started_at)) / 1000;
  return (
    <p className="footnote">
      <Link href={`/ui/runs/${turn.runId}`} title="What this run did, and what it cost">
        <Time at={run.finished_at} zone={zone} /> · {took(seconds)}
      </Link>
      {run.note && <> · {reasonText(run.note)}</>}
    </p>
  );
}

function Continue({ runId }: { runId: string }) {
  const go = useAct(() => call("POST /runs/{run_id}/continue", { path: { run_id: runId } }), [["runs"]]);
  return (
    <>
      <button type="button" className="small" disabled={go.isPending} onClick={() => go.mutate(undefined)}>
        <Icon name="play" size={14} />
        Continue
      </button>
      <ErrorText error={go.error} />
    </>
  );
}
