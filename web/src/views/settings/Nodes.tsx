import { useQuery } from "@tanstack/react-query";
import { call } from "../../api/client";
import * as queries from "../../api/queries";
import type { NodeShape } from "../../api/rest.generated";
import { count } from "../../components/text/labels";
import { Time } from "../../components/text/times";
import { ErrorText } from "../../components/ui/ErrorText";
import { SettingsSection } from "../../components/ui/SettingsSection";

/** The servers that share a PostgreSQL store, and draining them. */
export function Nodes() {
  const nodes = useQuery(queries.nodes);
  return (
    <SettingsSection
      title="Nodes"
      text="The servers that share this store. A node that drains claims no runs and hands back those it has, so that it can be restarted."
    >
      <ErrorText error={queries.problemOf(nodes)} />
      <ul className="rows" aria-label="Nodes">
        {nodes.data?.nodes.map((node) => (
          <NodeRow key={node.id} node={node} isThis={node.id === nodes.data.this_id} />
        ))}
      </ul>
    </SettingsSection>
  );
}

function NodeRow({ node, isThis }: { node: NodeShape; isThis: boolean }) {
  const path = { node_id: node.id };
  const change = queries.useAct(
    () => call(node.is_draining ? "POST /nodes/{node_id}/undrain" : "POST /nodes/{node_id}/drain", { path }),
    [["nodes"]],
  );
  return (
    <li>
      <span className="grow">
        <strong>
          {node.name} {isThis && <span className="badge">this one</span>} <State node={node} />
        </strong>
        <span className="muted small">
          Wakeful {node.version} · {count(node.runs, "run")} now · has used the files of {count(node.agents, "agent")}{" "}
          last · {node.place}
        </span>
        <span className="muted small">
          Last heartbeat <Time at={node.seen_at} /> · started <Time at={node.started_at} />
          {node.mcp_servers.length > 0 && ` · MCP servers: ${node.mcp_servers.join(", ")}`}
        </span>
        <ErrorText error={change.error} />
      </span>
      {node.is_alive && (
        <button type="button" className="small" disabled={change.isPending} onClick={() => change.mutate(undefined)}>
          {node.is_draining ? "Stop draining" : "Drain"}
        </button>
      )}
    </li>
  );
}

function State({ node }: { node: NodeShape }) {
  if (!node.is_alive) return <span className="badge bad">no heartbeat</span>;
  return node.is_draining ? <span className="badge calm">draining</span> : <span className="badge good">running</span>;
}
