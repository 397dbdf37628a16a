/** The state of a database above its tabs: being written to, nearly full. */

import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link } from "wouter";
import { database } from "../../../api/database";
import { Icon } from "../../../components/Icon";
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

export function QuotaBanner({ agentId }: { agentId: string }) {
  const found = useQuery(database(agentId)).data;
  if (!found?.used_bytes || !found.quota_bytes) return null;
  const part = found.used_bytes / found.quota_bytes;
  if (part < NEARLY_FULL) return null;
  return (
    <section className="quota-banner" aria-label="Database size">
      <Icon name="alert" />
      <p>
        <strong>{Math.floor(100 * part)} % of the database is used</strong>: {megabytes(found.used_bytes)} of{" "}
        {megabytes(found.quota_bytes)}. When it is full, the agent can only delete.{" "}
        <Link href={`/ui/agents/${agentId}/data`}>Delete rows</Link>: their space is reused by later writes. Or raise
        the limit in <Link href={`/ui/agents/${agentId}/configure#limits`}>Limits and budgets</Link>.
      </p>
    </section>
  );
}

function megabytes(size: number): string {
  return `${(size / 1024 ** 2).toLocaleString(undefined, { maximumFractionDigits: 1 })} MB`;
}
