/** Shows a tab when the agent's database is open; otherwise why it is not. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { explain } from "../../../api/client";
import { database } from "../../../api/database";
import type { AgentShape, DatabaseShape } from "../../../api/rest.generated";
import { Empty, Loading } from "../../../components/Page";
import { ImportDialog } from "./ImportDialog";
import "./OpenDatabase.css";

interface Props {
  agent: AgentShape;
  children: (found: DatabaseShape) => ReactNode;
}

export function OpenDatabase({ agent, children }: Props) {
  const found = useQuery(database(agent.id));
  if (found.isError) return <p className="bad-text">{explain(found.error)}</p>;
  if (!found.data) return <Loading what="the database" />;
  if (found.data.state !== "locked") return children(found.data);
  return (
    <Empty icon="lock" title="This database is locked">
      <p>
        The database file exists, but the key that opens it is missing. Nothing was changed, and the agent cannot use it
        until the key is back.
      </p>
      <ol className="unlock-steps">
        <li>
          Put <code>device.key</code> back into the server's config directory, from a backup or with the recovery key
          that the first start printed.
        </li>
        <li>
          If it is there, put this agent's <code>db.key</code> back beside its <code>db.sqlite</code>, in{" "}
          <code>agents/{agent.id}</code> of the data directory.
        </li>
        <li>Then load this page again.</li>
      </ol>
      <button type="button" onClick={() => void found.refetch()}>
        Try again
      </button>
    </Empty>
  );
}

/** How to begin with an empty database. */
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
