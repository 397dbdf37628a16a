/** The pauses above the agenda, with what they hold and a way to end them. */

import { useQuery } from "@tanstack/react-query";
import * as queries from "../../api/queries";
import type { AgentShape, PauseShape } from "../../api/rest.generated";
import { count } from "../../components/text/labels";
import { Icon } from "../../components/ui/Icon";
import { PausedUntil, PauseReason, useResume } from "../../components/wakes/PauseMenu";
import "./PauseRibbons.css";

export function PauseRibbons({ agents }: { agents: AgentShape[] }) {
  const everything = useQuery(queries.pauseOfAll).data;
  return (
    <>
      {everything && <Ribbon what="Everything" pause={everything} />}
      {agents.map((agent) => (
        <AgentRibbon key={agent.id} agent={agent} />
      ))}
    </>
  );
}

function AgentRibbon({ agent }: { agent: AgentShape }) {
  const pause = useQuery(queries.agentPause(agent.id)).data?.pause;
  return pause && <Ribbon what={agent.name} pause={pause} zone={agent.zone} />;
}

function Ribbon({ what, pause, zone }: { what: string; pause: PauseShape; zone?: string | undefined }) {
  const resume = useResume();
  return (
    <section className="pause-ribbon" aria-label={`${what} is paused`}>
      <Icon name="pause" size={15} />
      <span>
        <strong>{what} is paused</strong> <PausedUntil pause={pause} zone={zone} /> ·{" "}
        {pause.held > 0 ? `${count(pause.held, "run")} on hold` : "no run on hold"}
      </span>
      <PauseReason pause={pause} />
      <button type="button" className="small" disabled={resume.isPending} onClick={() => resume.mutate(pause.agent_id)}>
        <Icon name="play" size={14} />
        Resume
      </button>
    </section>
  );
}
