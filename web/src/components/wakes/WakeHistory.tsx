/** A scheduled run while someone edits it: how it came about, and what happened to it meanwhile. */

import { useQuery } from "@tanstack/react-query";
import * as queries from "../../api/queries";
import type { AgentShape, WakeShape } from "../../api/rest.generated";
import { Story } from "./Story";

/** The request, the changes, and the moves of its next time. */
export function WakeHistory({ wake, agent }: { wake: WakeShape; agent: AgentShape }) {
  const steps = useQuery(queries.why(wake.id)).data?.filter(
    ({ code, run_id, nominal_at }) =>
      code === "booked" ||
      code === "edited" ||
      (run_id === null && Date.parse(nominal_at) === Date.parse(wake.nominal_at)),
  );
  if (!steps?.length) return null;
  return (
    <details className="wake-history">
      <summary>How it came about</summary>
      <Story steps={steps} zone={agent.zone} />
    </details>
  );
}

const ENDED: Partial<Record<WakeShape["status"], string>> = {
  queued: "This run has become due meanwhile",
  running: "This run has started meanwhile",
  fired: "This run has started meanwhile",
  failed: "This run has failed meanwhile",
  cancelled: "This run was cancelled meanwhile",
  skipped: "This run was skipped meanwhile",
  superseded: "A newer scheduled run has replaced this one meanwhile",
};

/** The wake as it is now, and why it can no longer be changed; null if it can. */
export function useCurrent(wake: WakeShape | null): { current: WakeShape | null; ended: string | null } {
  const found = useQuery({ ...queries.wake(wake?.id ?? ""), enabled: wake !== null }).data;
  const ended = found && ENDED[found.status];
  return {
    current: found ?? wake,
    ended: ended
      ? `${ended}, so it can no longer be changed. Copy your text if you want to schedule another run.`
      : null,
  };
}
