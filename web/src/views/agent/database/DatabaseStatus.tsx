/** The state of a database above its tabs: being written to, nearly full. */

import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link } from "wouter";
import { database } from "../../../api/database";
import * as queries from "../../../api/queries";
import type { AgentShape, DatabaseShape, Me } from "../../../api/rest.generated";
import { Icon } from "../../../components/ui/Icon";
import "./DatabaseStatus.css";

const NEARLY_FULL = 0.8;
const MIN_SHOWN_MS = 700; // most writes are over before anyone could see the badge

export function WritingBadge({ agentId }: { agentId: string }) {
  const count = useQuery(database(agentId)).data?.in_flight ?? 0;
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    if (count > 0) return setShown(true);
    const timer = setTimeout(() => setShown(false), MIN_SHOWN_MS);
    return () => clearTimeout(timer);
  }, [count]);
  return (
    <span role="status" className="writing-badge">
      {(count > 0 || isShown) && (
        <span className="badge busy">
          <span className="pulse" />
          writing{count > 1 && ` · ${count}`}
        </span>
      )}
    </span>
  );
}

export function QuotaBanner({ agent }: { agent: AgentShape }) {
  const found = useQuery(database(agent.id)).data;
  const me = useQuery(queries.me).data;
  if (!found?.used_bytes || !found.quota_bytes) return null;
  const part = found.used_bytes / found.quota_bytes;
  if (part < NEARLY_FULL) return null;
  return (
    <section className="quota-banner" aria-label="Database size">
      <Icon name="alert" />
      <p>
        <strong>{Math.floor(100 * part)} % of the database is used</strong>: {megabytes(found.used_bytes)} of{" "}
        {megabytes(found.quota_bytes)}. When it is full, the agent can only delete.{" "}
        <Link href={`/ui/agents/${agent.id}/data`}>Delete rows</Link>: their space is reused by later writes.{" "}
        {me && mayRaise(me, found) ? (
          <>
            Or raise the <Link href={`/ui/agents/${agent.id}/configure#limits`}>database size limit</Link>.
          </>
        ) : (
          <>
            An owner of this server can allow more with the setting <code>agent_database_mb</code>.
          </>
        )}
      </p>
    </section>
  );
}

/** Only an owner may raise a limit above the server's own, which holds for an agent without one. */
function mayRaise({ user, scope }: Me, { quota_bytes, default_quota_bytes }: DatabaseShape): boolean {
  return scope === "admin" && (user.role === "owner" || (quota_bytes ?? 0) < default_quota_bytes);
}

function megabytes(size: number): string {
  return `${(size / 1024 ** 2).toLocaleString(undefined, { maximumFractionDigits: 1 })} MB`;
}
