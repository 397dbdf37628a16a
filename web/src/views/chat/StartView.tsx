/** Start a session: the first message creates it. */

import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { useLocation, useSearchParams } from "wouter";
import { call } from "../../api/client";
import * as queries from "../../api/queries";
import type { AgentShape } from "../../api/rest.generated";
import { PageHeader } from "../../components/frame/Page";
import { Composer } from "./composer/Composer";
import { Examples } from "./Examples";
import { ModelCard } from "./ModelCard";
import { type OutgoingMessage, sendMessage } from "./sending";
import "./StartView.css";

export function StartView() {
  const agents = useQuery(queries.agents).data ?? [];
  const [, navigate] = useLocation();
  const [params, setParams] = useSearchParams();
  const agent = agents.find((each) => each.id === params.get("agent")) ?? agents[0];
  const getSessionId = useNewSession(agent?.id);
  const send = async (outgoing: OutgoingMessage, sessionId: string) => {
    await sendMessage(sessionId, outgoing);
    void queries.queryClient.invalidateQueries({ queryKey: ["sessions"] });
    navigate(`/ui/sessions/${sessionId}`);
  };
  return (
    <div className="start">
      <PageHeader title="New session" />
      <div className="start-body">
        <div className="start-intro">
          <h2>What should {agent?.name ?? "the agent"} do?</h2>
          <p className="muted">
            {agent?.self_scheduling === false
              ? "It works when you write to it or schedule a run. Self-scheduling is off, so it cannot set its own alarm."
              : "Now, or later: it can schedule its own runs, and you can watch them."}
          </p>
        </div>
        <Composer
          draftKey="start"
          getSessionId={getSessionId}
          isBusy={false}
          isWoken={false}
          endedCount={0}
          onSend={send}
          onStop={null}
          placeholder="Message"
        >
          {agents.length > 1 && agent && (
            <AgentPicker
              agents={agents}
              chosen={agent}
              onChange={(id) => setParams({ agent: id }, { replace: true })}
            />
          )}
        </Composer>
        {agent && (
          <>
            <Examples
              agent={agent}
              onChoose={(content) => void getSessionId().then((id) => send({ content, images: [], files: [] }, id))}
            />
            <ModelCard agent={agent} />
          </>
        )}
      </div>
    </div>
  );
}

/** Return a function that creates a session of an agent when it is first called. */
function useNewSession(agentId: string | undefined): () => Promise<string> {
  const created = useRef<{ agentId: string | undefined; id: Promise<string> } | null>(null);
  return () => {
    if (!created.current || created.current.agentId !== agentId) {
      const id = call("POST /sessions", { body: { agent_id: agentId ?? null, title: "" } }).then(
        (session) => session.id,
      );
      created.current = { agentId, id };
    }
    return created.current.id;
  };
}

interface AgentPickerProps {
  agents: AgentShape[];
  chosen: AgentShape;
  onChange: (agentId: string) => void;
}

function AgentPicker({ agents, chosen, onChange }: AgentPickerProps) {
  return (
    <label className="choose-agent">
      <span className="hidden">Agent</span>
      <select value={chosen.id} onChange={(event) => onChange(event.target.value)}>
        {agents.map((each) => (
          <option key={each.id} value={each.id}>
            {each.name}
          </option>
        ))}
      </select>
    </label>
  );
}
