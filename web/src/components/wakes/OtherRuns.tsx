/** Runs that were scheduled here and will run elsewhere: the agent's next run, and new sessions. */

import { Link } from "wouter";
import type { AgentShape, WakeShape } from "../../api/rest.generated";
import { count } from "../text/labels";
import { Time } from "../text/times";
import { ErrorText } from "../ui/ErrorText";
import { movedText, scheduledBy } from "./moves";
import { useWakeActions } from "./wakeActions";

const MAX_SHOWN = 2;

interface Props {
  agent: AgentShape;
  wakes: WakeShape[];
  onEdit: (wake: WakeShape) => void;
}

export function OtherRuns({ agent, wakes, onEdit }: Props) {
  if (wakes.length === 0) return null;
  return (
    <ul className="banner-others" aria-label="Scheduled elsewhere">
      {wakes.slice(0, MAX_SHOWN).map((wake) => (
        <OtherRun key={wake.id} agent={agent} wake={wake} onEdit={onEdit} />
      ))}
      {wakes.length > MAX_SHOWN && (
        <li>
          <Link href={`/ui/agenda?agent=${agent.id}`}>+{wakes.length - MAX_SHOWN} more</Link>
        </li>
      )}
    </ul>
  );
}

/** The number of an agent's scheduled runs besides its next run, and the time of the first. */
export function RunsInSessions({ agent, wakes }: { agent: AgentShape; wakes: WakeShape[] }) {
  const [first] = wakes;
  if (!first) return null;
  return (
    <p className="banner-others muted">
      <Link href={`/ui/agenda?agent=${agent.id}`}>{count(wakes.length, "other scheduled run")}</Link>
      {wakes.length > 1 ? ", the first " : ", "}
      <Time at={first.attempt_at} zone={agent.zone} form="relative" />
    </p>
  );
}

/** The run in words, followed by its time: "Gardener's next run", "A new session starts". */
export function otherRunText(wake: WakeShape, agent: AgentShape): string {
  return wake.kind === "next_run" ? `${agent.name}'s next run` : "A new session starts";
}

function OtherRun({ agent, wake, onEdit }: Omit<Props, "wakes"> & { wake: WakeShape }) {
  const actions = useWakeActions(wake);
  const moved = movedText(wake, agent);
  const isNextRun = wake.kind === "next_run";
  const what = isNextRun ? "the next run" : "the new session";
  return (
    <li>
      <span className="grow">
        {otherRunText(wake, agent)}{" "}
        <strong>
          <Time at={wake.attempt_at} zone={agent.zone} form="relative" />
        </strong>{" "}
        <span className="muted">
          <Time at={wake.attempt_at} zone={agent.zone} /> · {scheduledBy(wake)}
          {moved && ` · ${moved}`}
        </span>
      </span>
      <button type="button" className="small quiet" aria-label={`Edit ${what}`} onClick={() => onEdit(wake)}>
        Edit
      </button>
      <button
        type="button"
        className="small quiet"
        aria-label={`Cancel ${what}`}
        onClick={() => actions.cancel.mutate(undefined)}
      >
        Cancel
      </button>
      <ErrorText error={actions.error} />
    </li>
  );
}
