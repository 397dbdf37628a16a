/** The time zone of the person at this browser. */

import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { call } from "../../api/client";
import * as queries from "../../api/queries";
import type { AgentShape } from "../../api/rest.generated";

export const BROWSER_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Send this browser's time zone to the server, if the person has none there. */
export function useReportZone() {
  const me = useQuery(queries.me).data;
  const report = queries.useQuickAct(
    (user_id: string) => call("PATCH /users/{user_id}", { path: { user_id }, body: { timezone: BROWSER_ZONE } }),
    [["me"], ["agents"]],
  );
  const isMissing = me?.scope === "admin" && me.user.timezone === null && BROWSER_ZONE;
  const { isIdle, mutate } = report;
  useEffect(() => {
    if (isMissing && isIdle) mutate(me.user.id);
  }, [isMissing, isIdle, mutate, me?.user.id]);
}

/** Ask once whether an agent of version 0.1, which had its own time zone, should use its user's. */
export function ZoneOffer({ agent }: { agent: AgentShape }) {
  const answer = queries.useQuickAct(
    (timezone: string | null) => call("PATCH /agents/{agent_id}", { path: { agent_id: agent.id }, body: { timezone } }),
    [["agents"]],
  );
  if (!agent.offered_timezone) return null;
  return (
    <div className="link-notice row wrap" role="status">
      <span className="grow">
        This agent's time zone is {agent.timezone}. Use {agent.offered_timezone} instead?
      </span>
      <button type="button" className="small primary" disabled={answer.isPending} onClick={() => answer.mutate(null)}>
        Use
      </button>
      <button type="button" className="small" disabled={answer.isPending} onClick={() => answer.mutate(agent.timezone)}>
        Keep
      </button>
    </div>
  );
}

export function ZoneNames() {
  return (
    <datalist id="time-zones">
      {Intl.supportedValuesOf("timeZone").map((zone) => (
        <option key={zone} value={zone} />
      ))}
    </datalist>
  );
}
