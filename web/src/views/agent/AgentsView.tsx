import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { explain } from "../../api/client";
import * as queries from "../../api/queries";
import type { AgentShape } from "../../api/rest.generated";
import { Empty, Failure, Loading, PageHeader } from "../../components/frame/Page";
import { count, MODES } from "../../components/text/labels";
import { Time } from "../../components/text/times";
import { Icon } from "../../components/ui/Icon";
import { PausedUntil } from "../../components/wakes/PauseMenu";
import { NewAgent } from "./NewAgent";
import "./AgentsView.css";

export default function AgentsView() {
  const agents = useQuery(queries.agents);
  const [isCreating, setCreating] = useState(false);
  if (queries.problemOf(agents))
    return <Failure title="Agents" text={explain(agents.error)} retry={() => void agents.refetch()} />;
  if (!agents.data) return <Loading what="agents" />;
  return (
    <div className="page">
      <PageHeader title="Agents">
        <button type="button" className="primary" onClick={() => setCreating(true)}>
          <Icon name="plus" />
          New agent
        </button>
      </PageHeader>
      <div className="page-body">
        {agents.data.length === 0 ? (
          <Empty icon="agent" title="No agents yet">
            <p>An agent has a name, a model, tools and limits. Create one to begin.</p>
          </Empty>
        ) : (
          <ul className="card-list">
            {agents.data.map((agent) => (
              <li key={agent.id}>
                <AgentCard agent={agent} />
              </li>
            ))}
          </ul>
        )}
      </div>
      {isCreating && <NewAgent onClose={() => setCreating(false)} />}
    </div>
  );
}

function AgentCard({ agent }: { agent: AgentShape }) {
  return (
    <Link href={`/ui/agents/${agent.id}`} className="card link agent-card">
      <h2>{agent.name}</h2>
      <p className="muted">{agent.description || "No description"}</p>
      <p className="row small">
        <span className="chip">{agent.self_scheduling ? MODES[agent.schedule.mode].label : "Self-scheduling off"}</span>
        <span className="muted">{agent.model ?? "Default model"}</span>
        <NextWake agent={agent} />
      </p>
    </Link>
  );
}

/** The time of the agent's next scheduled run, or that it is paused. */
function NextWake({ agent }: { agent: AgentShape }) {
  const pauses = useQuery(queries.agentPause(agent.id)).data;
  const wakes = (useQuery(queries.wakes).data ?? []).filter((wake) => wake.agent_id === agent.id);
  const times = wakes.map((wake) => wake.attempt_at).sort();
  const paused = pauses?.everything ?? pauses?.pause;
  const held = wakes.filter((wake) => wake.is_paused).length;
  if (paused)
    return (
      <span className="badge wait">
        <Icon name="pause" size={13} /> paused <PausedUntil pause={paused} zone={agent.zone} />
        {held > 0 && ` · ${count(held, "run")} on hold`}
      </span>
    );
  if (!times[0]) return null;
  return (
    <span className="muted">
      <Icon name="clock" size={13} /> scheduled run <Time at={times[0]} zone={agent.zone} form="relative" />
    </span>
  );
}
