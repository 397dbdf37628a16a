/** The start page's card about a model that is not a real one: what it means, and how to get another. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import * as queries from "../../api/queries";
import type { AgentShape } from "../../api/rest.generated";
import { lazyView } from "../../components/frame/lazyView";
import { DEMO, isGone } from "../../components/models/names";
import "./ModelCard.css";

const ConnectModel = lazyView(() => import("../../components/models/ConnectModel"), true);

export function ModelCard({ agent }: { agent: AgentShape }) {
  const about = useQuery(queries.about).data;
  const me = useQuery(queries.me).data;
  const [isConnecting, setConnecting] = useState(false);
  const isOwner = me?.user.role === "owner" && me.scope === "admin";
  const model = agent.model ?? about?.model;
  const problem =
    about === undefined || model === undefined
      ? null
      : model === DEMO
        ? "demo"
        : isGone(model, about.models)
          ? "gone"
          : null;
  return (
    <>
      {problem && (
        <section className="model-card card" aria-label="Model">
          <p>
            {problem === "demo" ? (
              <>
                <strong>{agent.name} uses the demo model.</strong> It is not an LLM: it works offline and understands a
                few sentences, such as the examples above.
              </>
            ) : (
              <>
                <strong>The model {model} was removed.</strong> {agent.name} cannot answer until it has another one.
              </>
            )}{" "}
            {agent.model ? (
              <Link href={`/ui/agents/${agent.id}/configure#model`}>Choose another model</Link>
            ) : (
              !isOwner && "An owner of this server can connect a real one."
            )}
          </p>
          {isOwner && !agent.model && (
            <button type="button" className="primary" onClick={() => setConnecting(true)}>
              Connect a model
            </button>
          )}
        </section>
      )}
      {/* Outside of the card, which ends as soon as there is a real model. */}
      {isConnecting && <ConnectModel onClose={() => setConnecting(false)} />}
    </>
  );
}
