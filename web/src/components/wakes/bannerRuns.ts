import type { AgentShape, WakeShape } from "../../api/rest.generated";

export interface BannerRuns {
  here: WakeShape[]; // the soonest first
  elsewhere: WakeShape[];
  inSessions: WakeShape[]; // of an agent, the soonest first
}

/** Return the scheduled runs that the banner of a session, or (without one) of an agent is about. */
export function bannerRuns(wakes: WakeShape[], agent: AgentShape, sessionId: string | undefined): BannerRuns {
  const sorted = wakes.toSorted((one, other) => one.attempt_at.localeCompare(other.attempt_at));
  const own = sorted.filter((wake) => wake.agent_id === agent.id);
  if (!sessionId)
    return {
      here: own.filter((wake) => wake.kind === "next_run"),
      elsewhere: [],
      inSessions: own.filter((wake) => wake.kind !== "next_run"),
    };
  const here = sorted.filter((wake) => wake.session_id === sessionId && wake.kind !== "session");
  // Runs that the agent has just scheduled are shown where it said so, also if they start elsewhere.
  const elsewhere = sorted.filter((wake) =>
    wake.kind === "next_run" ? wake.agent_id === agent.id : wake.kind === "session" && wake.session_id === sessionId,
  );
  return { here, elsewhere, inSessions: [] };
}
