/** The rows that one call changed, before and after, from the changelog of the agent's database. */

import { lazy, Suspense, useContext } from "react";
import { AgentOfItems } from "../contexts";
import type { ChangedRows } from "./parse";

const Changes = lazy(async () => ({ default: (await import("../../../agent/database/Changes")).Changes }));

const MAX_SHOWN = 20;

export function CallChanges({ changed }: { changed: ChangedRows }) {
  const agentId = useContext(AgentOfItems);
  if (agentId === null || changed.lastChange === null || changed.count === 0) return null;
  const which = { before: changed.lastChange + 1, limit: Math.min(changed.count, MAX_SHOWN) };
  return (
    <Suspense fallback={<p className="muted small">Loading changes</p>}>
      <Changes
        agentId={agentId}
        zone={undefined}
        which={which}
        nothing="The changelog no longer has these rows."
        isWhole
      />
      {changed.count > MAX_SHOWN && (
        <p className="muted small">
          The last {MAX_SHOWN} of {changed.count.toLocaleString()} rows. The run's page has all of them.
        </p>
      )}
    </Suspense>
  );
}
