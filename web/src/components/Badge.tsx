import { STATUS } from "./words";

/** How a run stands. */
export function StatusBadge({ status }: { status: string }) {
  const { text, tone } = STATUS[status] ?? { text: status, tone: "calm" };
  return <span className={`badge ${tone}`}>{text}</span>;
}
