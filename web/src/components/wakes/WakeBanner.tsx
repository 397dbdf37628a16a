/** The scheduled runs of a session and of its agent, or (without a session) the agent's own next run. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import * as queries from "../../api/queries";
import type { AgentShape, PauseShape, WakeShape } from "../../api/rest.generated";
import { MuteButton } from "../frame/MuteButton";
import { count, kindText, MODES } from "../text/labels";
import { Time } from "../text/times";
import { ErrorText } from "../ui/ErrorText";
import { Icon } from "../ui/Icon";
import { usePhone } from "../ui/usePhone";
import { BannerLine } from "./BannerLine";
import { bannerRuns } from "./bannerRuns";
import { HeldRuns } from "./HeldRuns";
import { delayText, movedText, scheduledBy } from "./moves";
import { OtherRuns, RunsInSessions } from "./OtherRuns";
import { PausedUntil, PauseMenu, PauseReason, useResume } from "./PauseMenu";
import { ScheduleDialog } from "./ScheduleDialog";
import { useWakeActions } from "./wakeActions";
import "./WakeBanner.css";

interface Props {
  agent: AgentShape;
  sessionId?: string;
}

/** The run that the dialog is open for; a new one has no wake. */
interface Opened {
  wake: WakeShape | null;
  sessionId: string | null;
}

export function WakeBanner({ agent, sessionId }: Props) {
  // The dialog is kept here, outside of the banners: one replaces another when a run starts, ends or is cancelled, and
  // what was typed must not be lost.
  const [opened, setOpened] = useState<Opened | null>(null);
  const [isSheetOpen, setSheetOpen] = useState(false);
  const isPhone = usePhone();
  const open = (wake: WakeShape | null) => {
    setSheetOpen(false);
    setOpened({ wake, sessionId: wake ? wake.session_id : (sessionId ?? null) });
  };
  const banner = <Banner agent={agent} sessionId={sessionId} onOpen={open} />;
  return (
    <>
      {isPhone ? (
        <BannerLine agent={agent} sessionId={sessionId} isOpen={isSheetOpen} onOpen={setSheetOpen}>
          {banner}
        </BannerLine>
      ) : (
        banner
      )}
      {opened && <ScheduleDialog agent={agent} {...opened} onClose={() => setOpened(null)} />}
    </>
  );
}

interface BannerProps {
  agent: AgentShape;
  sessionId: string | undefined;
  onOpen: (wake: WakeShape | null) => void;
}

function Banner({ agent, sessionId, onOpen }: BannerProps) {
  const wakes = useQuery(queries.wakes).data;
  const pause = useQuery(queries.agentPause(agent.id)).data;
  if (!wakes || !pause) return null;
  const { here, elsewhere, inSessions } = bannerRuns(wakes, agent, sessionId);
  const paused = pause.everything ?? pause.pause;
  if (paused) {
    const held = wakes.filter((wake) => wake.agent_id === agent.id && wake.is_paused);
    return <PausedBanner agent={agent} pause={paused} held={held} sessionId={sessionId} />;
  }
  const others = <OtherRuns agent={agent} wakes={elsewhere} onEdit={onOpen} />;
  const soonest = here[0];
  if (soonest)
    return (
      <ScheduledBanner agent={agent} wake={soonest} more={here.length - 1} onEdit={() => onOpen(soonest)}>
        {others}
        <RunsInSessions agent={agent} wakes={inSessions} />
      </ScheduledBanner>
    );
  // The header of a session has the controls: see IdleControls.
  if (sessionId) return elsewhere.length > 0 ? <div className="banner is-elsewhere">{others}</div> : null;
  if (!agent.self_scheduling) return null;
  return <IdleBanner agent={agent} inSessions={inSessions} onSchedule={() => onOpen(null)} />;
}

export function ModeChip({ agent }: { agent: AgentShape }) {
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

interface ScheduledProps {
  agent: AgentShape;
  wake: WakeShape;
  more: number;
  onEdit: () => void;
  children: ReactNode;
}

function ScheduledBanner({ agent, wake, more, onEdit, children }: ScheduledProps) {
  const actions = useWakeActions(wake);
  const isHeld = wake.held_by !== null && wake.attempt_at !== wake.nominal_at;
  const moved = movedText(wake, agent);
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
            {wake.call_type === "recurring" && " · recurring"} · {scheduledBy(wake)}
            {more > 0 && ` · +${more} more`}
          </span>
          {isHeld && <span className="badge wait">delayed: {delayText(wake.held_by ?? "", agent.schedule.days)}</span>}
        </p>
        <PauseMenu agentId={agent.id} />
        <ModeChip agent={agent} />
      </div>
      {moved && <p className="muted small">{moved}</p>}
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
          <button type="button" className="small" onClick={onEdit}>
            Edit
          </button>
          <button type="button" className="small" onClick={() => actions.cancel.mutate(undefined)}>
            Cancel
          </button>
          <MuteButton wake={wake} />
        </div>
      </div>
      <ErrorText error={actions.error} />
      {children}
    </section>
  );
}

interface PausedProps {
  agent: AgentShape;
  pause: PauseShape;
  held: WakeShape[]; // of this agent
  sessionId: string | undefined;
}

function PausedBanner({ agent, pause, held, sessionId }: PausedProps) {
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
          {pause.held > 0 && (
            <span className="muted">
              {count(pause.held, "run")} on hold{isEverything && ", of all agents"}
            </span>
          )}
        </div>
        <ModeChip agent={agent} />
      </div>
      <div className="banner-bottom">
        <div className="grow">
          <HeldRuns agent={agent} wakes={held} sessionId={sessionId} />
        </div>
        <button type="button" className="small" onClick={() => resume.mutate(isEverything ? null : agent.id)}>
          <Icon name="play" size={14} />
          Resume
        </button>
      </div>
    </section>
  );
}

interface IdleProps {
  agent: AgentShape;
  inSessions: WakeShape[];
  onSchedule: () => void;
}

/** The banner of an agent's page; a session has these controls in its header. */
function IdleBanner({ agent, inSessions, onSchedule }: IdleProps) {
  return (
    <section
      className="banner is-idle"
      aria-label={inSessions.length > 0 ? "No next run scheduled" : "Nothing scheduled"}
    >
      <div className="banner-top">
        <Icon name="clock" />
        <p className="banner-when muted">No next run scheduled.</p>
        <button type="button" className="quiet" onClick={onSchedule}>
          <Icon name="plus" size={15} />
          Schedule
        </button>
        <PauseMenu agentId={agent.id} />
        <ModeChip agent={agent} />
      </div>
      <RunsInSessions agent={agent} wakes={inSessions} />
    </section>
  );
}
