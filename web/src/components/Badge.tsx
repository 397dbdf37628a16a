import { statusOf } from "./labels";

/** How a run stands. */
export function StatusBadge({ run }: { run: { status: string; note?: string | null } }) {
  const { text, tone } = statusOf(run);
  return <span className={`badge ${tone}`}>{text}</span>;
}
