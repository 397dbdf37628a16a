/** Schedule and pause, in the header of a session in which nothing is scheduled. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import * as queries from "../../api/queries";
import type { AgentShape } from "../../api/rest.generated";
import { Icon } from "../ui/Icon";
import { PauseMenu } from "./PauseMenu";
import { ScheduleDialog } from "./ScheduleDialog";
import { ModeChip } from "./WakeBanner";

export function IdleControls({ agent, sessionId }: { agent: AgentShape; sessionId: string }) {
  const wakes = useQuery(queries.wakes).data;
  const pause = useQuery(queries.agentPause(agent.id)).data;
  const [isScheduling, setScheduling] = useState(false);
  const isIdle =
    agent.self_scheduling &&
    pause?.pause === null &&
    pause.everything === null &&
    wakes?.every((wake) => wake.session_id !== sessionId || wake.kind === "session");
  return (
    <>
      {isIdle && (
        <div className="idle-controls" role="group" aria-label="Nothing scheduled">
          <button
            type="button"
            className="quiet"
            aria-label="Schedule"
            title="Nothing is scheduled in this session. Schedule a run"
            onClick={() => setScheduling(true)}
          >
            <Icon name="clock" />
            <span className="wide-only">Schedule</span>
          </button>
          <PauseMenu agentId={agent.id} />
          <ModeChip agent={agent} />
        </div>
      )}
      {/* It stays open when the session gets its first scheduled run meanwhile. */}
      {isScheduling && (
        <ScheduleDialog agent={agent} sessionId={sessionId} wake={null} onClose={() => setScheduling(false)} />
      )}
    </>
  );
}
