/** Shows a tab when the agent's database is open; otherwise why it is not, or how to begin. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { database, schema } from "../../../api/database";
import { problemOf } from "../../../api/queries";
import type { AgentShape, SchemaShape } from "../../../api/rest.generated";
import { Empty, Loading } from "../../../components/frame/Page";
import { ErrorText } from "../../../components/ui/ErrorText";
import { ImportDialog } from "./data/ImportDialog";
import "./OpenDatabase.css";

interface Props {
  agent: AgentShape;
  children: (schema: SchemaShape) => ReactNode;
}

export function OpenDatabase({ agent, children }: Props) {
  const found = useQuery(database(agent.id));
  const state = found.data?.state;
  const loaded = useQuery({ ...schema(agent.id), enabled: state === "open" });
  if (problemOf(found)) return <ErrorText error={found.error} />;
  if (state === "none") return <EmptyDatabase agent={agent} />;
  if (state === "locked") return <LockedDatabase agent={agent} onRetry={() => void found.refetch()} />;
  if (problemOf(loaded)) return <ErrorText error={loaded.error} />;
  return loaded.data ? children(loaded.data) : <Loading what="the database" />;
}

function LockedDatabase({ agent, onRetry }: { agent: AgentShape; onRetry: () => void }) {
  return (
    <Empty icon="lock" title="This database is locked">
      <p>
        The database file exists, but the key that opens it is missing. Nothing was changed, and the agent cannot use it
        until the key is back.
      </p>
      <ol className="unlock-steps">
        <li>
          Put this agent's <code>db.key</code> back from a backup: it belongs in <code>agents/{agent.id}</code> of the
          data directory, beside <code>db.sqlite</code>.
        </li>
        <li>
          If it is there, it was encrypted with another device key. Put that <code>device.key</code> back into the
          server's config directory, from a backup or with <code>wakeful key restore</code> and the recovery key, and
          restart the server.
        </li>
      </ol>
      <button type="button" onClick={onRetry}>
        Try again
      </button>
    </Empty>
  );
}

/** Ways to begin with an empty database. */
export function EmptyDatabase({ agent }: { agent: AgentShape }) {
  const [isImporting, setImporting] = useState(false);
  const [, navigate] = useLocation();
  return (
    <Empty icon="table" title={`${agent.name} has stored nothing yet`}>
      <p>
        Ask it to, in a session: “remember that the plumber comes on Friday”. It creates the tables it needs, and they
        appear here.
      </p>
      <button type="button" onClick={() => setImporting(true)}>
        Import a file
      </button>
      {isImporting && (
        <ImportDialog
          agent={agent}
          onDone={(table) => navigate(`/ui/agents/${agent.id}/data?table=${encodeURIComponent(table)}`)}
          onClose={() => setImporting(false)}
        />
      )}
    </Empty>
  );
}
