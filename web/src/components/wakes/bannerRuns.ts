import type { AgentShape, WakeShape } from "../../api/rest.generated";

export interface BannerRuns {
  here: WakeShape[]; // the soonest first
  elsewhere: WakeShape[];
}

/** Return the scheduled runs that the banner of a session, or (without one) of an agent is about. */
export function bannerRuns(wakes: WakeShape[], agent: AgentShape, sessionId: string | undefined): BannerRuns {
  const here = wakes
    .filter((wake) =>
      sessionId
        ? wake.session_id === sessionId && wake.kind !== "session"
        : wake.agent_id === agent.id && wake.kind === "next_run",
    )
    .sort((one, other) => one.attempt_at.localeCompare(other.attempt_at));
  // Runs that the agent has just scheduled are shown where it said so, also if they start elsewhere.
  const elsewhere = !sessionId
    ? []
    : wakes.filter((wake) =>
        wake.kind === "next_run"
          ? wake.agent_id === agent.id
          : wake.kind === "session" && wake.session_id === sessionId,
      );
  return { here, elsewhere };
}
