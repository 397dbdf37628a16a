import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { call, explain } from "../../api/client";
import * as queries from "../../api/queries";
import { MAX_LENGTH } from "../../api/server.generated";
import { Dialog } from "../../components/Dialog";
import { Icon } from "../../components/Icon";
import { MODES } from "../../components/labels";
import { Empty, Failure, Loading, PageHeader } from "../../components/Page";
import { Time } from "../../components/times";
import "./AgentsView.css";

export default function AgentsView() {
  const agents = useQuery(queries.agents);
  const wakes = useQuery(queries.wakes).data ?? [];
  const [isCreating, setCreating] = useState(false);
  if (agents.isError)
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
            {agents.data.map((agent) => {
              const next = wakes
                .filter((wake) => wake.agent_id === agent.id)
                .sort((one, other) => one.attempt_at.localeCompare(other.attempt_at))[0];
              return (
                <li key={agent.id}>
                  <Link href={`/ui/agents/${agent.id}`} className="card link agent-card">
                    <h2>{agent.name}</h2>
                    <p className="muted">{agent.description || "No description"}</p>
                    <p className="row small">
                      <span className="chip">
                        {agent.self_scheduling ? MODES[agent.schedule.mode].label : "Self-scheduling off"}
                      </span>
                      <span className="muted">{agent.model ?? "Default model"}</span>
                      {next && (
                        <span className="muted">
                          <Icon name="clock" size={13} /> next run{" "}
                          <Time at={next.attempt_at} zone={agent.zone} form="relative" />
                        </span>
                      )}
                    </p>
                  </Link>
                </li>
              );
            })}
          </ul>
        )}
      </div>
      {isCreating && <NewAgent onClose={() => setCreating(false)} />}
    </div>
  );
}

function NewAgent({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [, navigate] = useLocation();
  const make = queries.useAct(
    () => call("POST /agents", { body: { name, toolsets: ["files", "web"] } }),
    [["agents"]],
    (agent) => navigate(`/ui/agents/${agent.id}`),
  );
  return (
    <Dialog title="New agent" onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          make.mutate(undefined);
        }}
      >
        <label className="field">
          Name
          <input
            value={name}
            required
            maxLength={MAX_LENGTH.NewAgent.name}
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        <p className="muted small">
          It starts with file and web tools, and schedules nothing by itself until you allow it.
        </p>
        {make.isError && (
          <p className="bad-text" role="alert">
            {explain(make.error)}
          </p>
        )}
        <div className="row end">
          <button type="submit" className="primary" disabled={make.isPending}>
            Create
          </button>
        </div>
      </form>
    </Dialog>
  );
}
