/** Entries of the changelog: the change, its author, and the values before and after. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError, call } from "../../../api/client";
import { type Cell, changes, useWrite, type WhichChanges } from "../../../api/database";
import { problemOf } from "../../../api/queries";
import type { ChangeShape } from "../../../api/rest.generated";
import { Loading } from "../../../components/frame/Page";
import { Time } from "../../../components/text/times";
import { Confirm } from "../../../components/ui/Dialog";
import { ErrorText } from "../../../components/ui/ErrorText";
import { Value } from "./data/Value";
import "./Changes.css";

interface Props {
  agentId: string;
  zone: string | undefined;
  which: WhichChanges;
  nothing: string; // shown without entries
  isWhole?: boolean; // no earlier ones are offered
}

export function useChanges(agentId: string, which: Props["which"]) {
  return useInfiniteQuery(changes(agentId, which));
}

export function Changes({ agentId, zone, which, nothing, isWhole = false }: Props) {
  const found = useChanges(agentId, which);
  if (found.error instanceof ApiError && found.error.code === "database_locked")
    return <p className="muted">The agent's database is locked, so its changes cannot be shown.</p>;
  if (problemOf(found)) return <ErrorText error={found.error} />;
  const entries = found.data?.pages.flatMap((page) => page.changes);
  if (!entries) return <Loading what="changes" />;
  if (entries.length === 0) return <p className="muted">{nothing}</p>;
  return (
    <>
      <ol className="changes">
        {entries.map((entry) => (
          <Change key={entry.id} agentId={agentId} entry={entry} zone={zone} />
        ))}
      </ol>
      {found.hasNextPage && !isWhole && (
        <button
          type="button"
          className="small"
          disabled={found.isFetchingNextPage}
          onClick={() => void found.fetchNextPage()}
        >
          Earlier changes
        </button>
      )}
    </>
  );
}

const OPS: Record<ChangeShape["op"], { text: string; tone: string }> = {
  schema: { text: "schema", tone: "busy" },
  insert: { text: "added", tone: "good" },
  update: { text: "changed", tone: "wait" },
  soft_delete: { text: "deleted", tone: "bad" },
  restore: { text: "restored", tone: "good" },
  execute: { text: "by SQL", tone: "wait" },
  import: { text: "imported", tone: "good" },
  undo: { text: "undone", tone: "calm" },
  purge: { text: "purged", tone: "bad" },
};
const ACTORS: Record<ChangeShape["actor"], string> = {
  agent: "the agent",
  user: "you",
  migration: "a migration",
  system: "the server",
};
const SYSTEM_COLUMNS = ["_created_at", "_updated_at", "_deleted_at"];

function Change({ agentId, entry, zone }: { agentId: string; entry: ChangeShape; zone: string | undefined }) {
  const { text, tone } = OPS[entry.op];
  return (
    <li>
      <p className="change-head">
        <span className={`badge ${tone}`}>{text}</span>
        {entry.table_name && (
          <strong>
            {entry.table_name}
            {entry.row_id !== null && ` #${entry.row_id}`}
          </strong>
        )}
        <span className="muted small">
          by {ACTORS[entry.actor]}, <Time at={entry.at} zone={zone} />
        </span>
      </p>
      {Boolean(entry.detail?.down_sql) && <RevertMigration agentId={agentId} entry={entry} />}
      <Difference before={entry.before} after={entry.after} />
      {entry.detail && (
        <p className="small">
          <Value value={JSON.stringify(entry.detail)} name={`${text} ${entry.table_name ?? ""}`} />
        </p>
      )}
    </li>
  );
}

/** A migration comes with statements that revert it; only a person can run them. */
function RevertMigration({ agentId, entry }: { agentId: string; entry: ChangeShape }) {
  const [isAsking, setAsking] = useState(false);
  const undo = useWrite(
    () =>
      call("POST /agents/{agent_id}/db/changelog/{change_id}/take-back", {
        path: { agent_id: agentId, change_id: entry.id },
      }),
    () => setAsking(false),
  );
  return (
    <>
      <p role="status">
        {undo.isSuccess ? (
          "Reverted."
        ) : (
          <button type="button" className="small" onClick={() => setAsking(true)}>
            Revert
          </button>
        )}
      </p>
      {isAsking && (
        <Confirm
          title="Revert this migration?"
          text={`Runs the statements that its author wrote for this, after a snapshot of the file: ${String(entry.detail?.down_sql)}`}
          action="Revert"
          error={undo.error}
          onConfirm={() => undo.mutate(undefined)}
          onClose={() => setAsking(false)}
        />
      )}
    </>
  );
}

function Difference({ before, after }: { before: Record<string, Cell> | null; after: Record<string, Cell> | null }) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])].filter(
    (name) => !SYSTEM_COLUMNS.includes(name),
  );
  if (names.length === 0) return null;
  return (
    <dl className="difference">
      {names.map((name) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            {before && name in before && (
              <del>
                <Value value={before[name] ?? null} name={`${name} before`} />
              </del>
            )}
            {before && after && <span aria-hidden="true"> → </span>}
            {after && name in after && <Value value={after[name] ?? null} name={name} />}
          </dd>
        </div>
      ))}
    </dl>
  );
}
