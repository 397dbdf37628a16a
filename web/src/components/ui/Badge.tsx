import { statusOf } from "../text/labels";

/** The status of a run. */
export function StatusBadge({ run }: { run: { status: string; note?: string | null } }) {
  const { text, tone } = statusOf(run);
  return <span className={`badge ${tone}`}>{text}</span>;
}
