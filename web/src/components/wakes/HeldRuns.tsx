/** The scheduled runs of an agent that a pause holds. */

import { Link } from "wouter";
import type { AgentShape, WakeShape } from "../../api/rest.generated";
import { kindText } from "../text/labels";
import { Time } from "../text/times";

const MAX_SHOWN = 3;

interface Props {
  agent: AgentShape;
  wakes: WakeShape[];
  sessionId: string | undefined; // the session that is open
}

export function HeldRuns({ agent, wakes, sessionId }: Props) {
  if (wakes.length === 0) return null;
  const sorted = wakes.toSorted((one, other) => one.nominal_at.localeCompare(other.nominal_at));
  return (
    <ul className="banner-others" aria-label={`Runs of ${agent.name} on hold`}>
      {sorted.slice(0, MAX_SHOWN).map((wake) => (
        <li key={wake.id}>
          <span className="held-run">{nameOf(wake)}</span>
          <span className="muted">
            planned <Time at={wake.nominal_at} zone={agent.zone} />
            {wake.call_type === "recurring" && " · recurring"}
          </span>
          {wake.session_id && wake.session_id !== sessionId && (
            <Link href={`/ui/sessions/${wake.session_id}`} aria-label={`Open the session of ${nameOf(wake)}`}>
              Open session
            </Link>
          )}
        </li>
      ))}
      {wakes.length > MAX_SHOWN && (
        <li>
          <Link href={`/ui/agenda?agent=${agent.id}`}>+{wakes.length - MAX_SHOWN} more</Link>
        </li>
      )}
    </ul>
  );
}

function nameOf(wake: WakeShape): string {
  return wake.comment || wake.instructions || kindText(wake.kind);
}
