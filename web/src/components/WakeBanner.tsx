/** The next scheduled run: of a session, or (without one) the agent's own next run. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { call } from "../api/client";
import * as queries from "../api/queries";
import type { AgentShape, PauseShape, WakeShape } from "../api/rest.generated";
import { ErrorText } from "./ErrorText";
import { Icon } from "./Icon";
import { byWhom, count, kindText, MODES, reasonText } from "./labels";
import { MuteButton } from "./MuteButton";
import { PausedUntil, PauseMenu, PauseReason, useResume } from "./PauseMenu";
import { ScheduleDialog } from "./ScheduleDialog";
import { Time } from "./times";
import "./WakeBanner.css";

interface Props {
  agent: AgentShape;
  sessionId?: string;
}

export function WakeBanner({ agent, sessionId }: Props) {
  const wakes = useQuery(queries.wakes).data;
  const pause = useQuery(queries.agentPause(agent.id)).data;
  if (!wakes || !pause) return null;
  const here = wakes
    .filter((wake) =>
      sessionId
        ? wake.session_id === sessionId && wake.kind !== "session"
        : wake.agent_id === agent.id && wake.kind === "next_run",
    )
    .sort((one, other) => one.attempt_at.localeCompare(other.attempt_at));
  const paused = pause.everything ?? pause.pause;
  if (paused && (agent.self_scheduling || here.length)) {
    const held = sessionId ? here : wakes.filter((wake) => wake.agent_id === agent.id); // a pause holds every kind
    return <PausedBanner agent={agent} pause={paused} heldCount={held.length} />;
  }
  const soonest = here[0];
  if (soonest) return <ScheduledBanner agent={agent} wake={soonest} more={here.length - 1} />;
  return agent.self_scheduling ? <IdleBanner agent={agent} sessionId={sessionId} /> : null;
}

function ModeChip({ agent }: { agent: AgentShape }) {
  if (!agent.self_scheduling) return null;
  const { label } = MODES[agent.schedule.mode];
  return (
    <Link
      className="chip link mode"
      href={`/ui/agents/${agent.id}/configure#scheduling`}
      title="The limits of its self-scheduling"
    >
      {label}
      {agent.schedule.is_customised && " · customised"}
    </Link>
  );
}

function ScheduledBanner({ agent, wake, more }: { agent: AgentShape; wake: WakeShape; more: number }) {
  const actions = useWakeActions(wake);
  const [isEditing, setEditing] = useState(false);
  const isHeld = wake.held_by !== null && wake.attempt_at !== wake.nominal_at;
  const problem = [actions.cancel, actions.skip, actions.runNow].find((each) => each.isError)?.error;
  return (
    <section className="banner is-scheduled" aria-label="Scheduled run">
      <div className="banner-top">
        <Icon name="clock" />
        <p className="banner-when">
          <strong>
            <Time at={isHeld ? wake.attempt_at : wake.nominal_at} zone={agent.zone} form="relative" />
          </strong>
          <span className="muted">
            <Time at={isHeld ? wake.attempt_at : wake.nominal_at} zone={agent.zone} />
            {wake.call_type === "recurring" && " · recurring"} · {byWhom(wake.scheduled_by)}
            {more > 0 && ` · +${more} more`}
          </span>
          {isHeld && <span className="badge wait">delayed: {reasonText(wake.held_by ?? "")}</span>}
        </p>
        <PauseMenu agentId={agent.id} />
        <ModeChip agent={agent} />
      </div>
      <div className="banner-bottom">
        <p className="banner-what" title={wake.instructions}>
          {wake.comment || wake.instructions || kindText(wake.kind)}
        </p>
        <div className="row">
          <button
            type="button"
            className="small"
            disabled={actions.runNow.isPending}
            onClick={() => actions.runNow.mutate(undefined)}
          >
            Run now
          </button>
          {wake.call_type === "recurring" && (
            <button type="button" className="small" onClick={() => actions.skip.mutate(undefined)}>
              Skip
            </button>
          )}
          <button type="button" className="small" onClick={() => setEditing(true)}>
            Edit
          </button>
          <button type="button" className="small" onClick={() => actions.cancel.mutate(undefined)}>
            Cancel
          </button>
          <MuteButton wake={wake} />
        </div>
      </div>
      <ErrorText error={problem} />
      {isEditing && (
        <ScheduleDialog agent={agent} sessionId={wake.session_id} wake={wake} onClose={() => setEditing(false)} />
      )}
    </section>
  );
}

function useWakeActions(wake: WakeShape) {
  const changes = [["wakes"], ["sessions"], ["agenda"], ["runs"]];
  const path = { wake_id: wake.id };
  const cancel = queries.useAct(() => call("DELETE /wakes/{wake_id}", { path }), changes);
  const skip = queries.useAct(() => call("POST /wakes/{wake_id}/skip", { path }), changes);
  const runNow = queries.useAct(() => call("POST /wakes/{wake_id}/run-now", { path }), changes);
  return { cancel, skip, runNow };
}

function PausedBanner({ agent, pause, heldCount }: { agent: AgentShape; pause: PauseShape; heldCount: number }) {
  const resume = useResume();
  const isEverything = pause.agent_id === null;
  return (
    <section className="banner is-paused" aria-label="Paused">
      <div className="banner-top">
        <Icon name="pause" />
        <div className="banner-when">
          <strong>
            {isEverything ? "Everything is paused" : "Paused"} <PausedUntil pause={pause} zone={agent.zone} />
          </strong>
          <PauseReason pause={pause} />
          {heldCount > 0 && <span className="muted">{count(heldCount, "run")} on hold</span>}
        </div>
        <ModeChip agent={agent} />
      </div>
      <div className="banner-bottom">
        <span className="grow" />
        <button type="button" className="small" onClick={() => resume.mutate(isEverything ? null : agent.id)}>
          <Icon name="play" size={14} />
          Resume
        </button>
      </div>
    </section>
  );
}

function IdleBanner({ agent, sessionId }: { agent: AgentShape; sessionId: string | undefined }) {
  const [isScheduling, setScheduling] = useState(false);
  return (
    <section className="banner is-idle" aria-label="Nothing scheduled">
      <div className="banner-top">
        <Icon name="clock" />
        <p className="banner-when muted">
          {sessionId ? "Nothing scheduled in this session." : "No next run scheduled."}
        </p>
        <button type="button" className="quiet" onClick={() => setScheduling(true)}>
          <Icon name="plus" size={15} />
          Schedule
        </button>
        <PauseMenu agentId={agent.id} />
        <ModeChip agent={agent} />
      </div>
      {isScheduling && (
        <ScheduleDialog agent={agent} sessionId={sessionId ?? null} wake={null} onClose={() => setScheduling(false)} />
      )}
    </section>
  );
}
