/** Codes of the server in words. */

const REASONS: Record<string, string> = {
  quiet_hours: "quiet hours",
  day_not_allowed: "this day is not allowed",
  daily_cap: "the day's runs are used up",
  paused: "paused",
  pause: "paused",
  deferred: "the session was busy",
  overlap: "the run before was not done",
  backoff: "waiting after failures",
  brake: "too many runs in an hour",
  missed: "missed",
  memory_elsewhere: "its data directory has no running node",
  out_of_resources: "the server was out of resources",
  disk_full: "the server's disk was full",
  min_interval: "too soon after the last",
  max_horizon: "too far ahead",
  low_priority: "low priority, and you were talking",
  loop_ended: "it booked no next run",
  past: "the time was past",
  clock_change: "the clocks change then",
  replanned: "planned again, since the clock was wrong",
  cron: "the next time of its rule",
  session_deleted: "the session was deleted",
  self_scheduling_off: "self-scheduling is off",
};

export function reasonText(code: string): string {
  return REASONS[code] ?? code.replaceAll("_", " ");
}

export const STATUS: Record<string, { text: string; tone: "good" | "bad" | "busy" | "calm" | "wait" }> = {
  queued: { text: "waiting", tone: "wait" },
  running: { text: "running", tone: "busy" },
  success: { text: "done", tone: "good" },
  failed: { text: "failed", tone: "bad" },
  stopped: { text: "stopped", tone: "calm" },
  skipped: { text: "skipped", tone: "calm" },
  interrupted: { text: "interrupted", tone: "bad" },
};

/** What to say instead of "done" about a run that gave no answer. */
const UNANSWERED: Record<string, string> = { did_nothing: "did nothing", empty_answer: "empty answer" };

export function statusOf({ status, note }: { status: string; note?: string | null }): { text: string; tone: string } {
  const unanswered = note && UNANSWERED[note];
  return unanswered ? { text: unanswered, tone: "wait" } : (STATUS[status] ?? { text: status, tone: "calm" });
}

/** Why a run ended as it did, unless its status says so already. */
export function reasonOf({ reason, note }: { reason: string | null; note: string | null }): string | null {
  return reason && !(reason === note && UNANSWERED[reason]) ? reasonText(reason) : null;
}

export const MODES = {
  ambient: { name: "Ambient", tagline: "A quiet companion that looks in now and then." },
  reactive: { name: "Reactive", tagline: "Follows things closely, day and night." },
  project: { name: "Project", tagline: "Works on something long, a few times a day." },
  manual: { name: "Manual", tagline: "Books nothing by itself." },
} as const;

export type Mode = keyof typeof MODES;

const KINDS: Record<string, string> = {
  recall: "Recall",
  message: "Message",
  session: "New session",
  next_run: "Next run",
};

export function kindText(kind: string | null): string {
  return kind ? (KINDS[kind] ?? kind) : "Chat";
}

export function byWhom(by: string): string {
  return by === "user" ? "by you" : by === "agent" ? "by the agent" : "by the system";
}
