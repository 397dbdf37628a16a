/** Refusals of a booking or a change, in the words of the form. */

import { ApiError, explain } from "../../api/client";
import { isAbout, withLabels } from "../ui/FieldError";

/** The fields of the form, with those of the request that they fill. */
const FIELDS = {
  what: ["instructions", "additional_context_message"],
  when: ["when", "at", "timezone"],
  repeat: ["cron", "interval_seconds", "until", "max_runs", "call_type"],
  ping: ["ping_url"],
} as const;

export type FormField = keyof typeof FIELDS;

const LABELS = {
  instructions: "What the agent should do",
  additional_context_message: "What the agent should do",
  when: "When",
  timezone: "Time zone",
  cron: "Cron rule",
  interval_seconds: "Every",
  ping_url: "Ping address",
};

const OWN_WORDS: Readonly<Record<string, string>> = {
  slot_taken: "This session has a scheduled run already. Edit or cancel that one.",
  wake_not_live: "This run has started or was cancelled meanwhile, so it can no longer be changed.",
  no_such_wake: "This run is no longer scheduled.",
  delay_out_of_bounds: "This kind of run can be scheduled at most 24 hours ahead.",
};

/** The text of a refusal, without the names of the API. */
export function refusalText(error: unknown): string {
  if (!(error instanceof ApiError)) return explain(error);
  const own = Object.hasOwn(OWN_WORDS, error.code) ? OWN_WORDS[error.code] : undefined;
  const text = explain(error)
    .replace(/^'([^']*)'/, "“$1”")
    .replace(/: it means .*$/s, ".")
    .replace(/ Accepted forms: .*$/s, " Try “30m”, “tomorrow at 9” or “friday 14:30”.");
  return own ?? withLabels(text, LABELS);
}

/** The first of these errors that belongs to a field of the form, or (null) to none. */
export function errorAt(field: FormField | null, ...errors: unknown[]): unknown {
  return errors.find((error) =>
    field === null
      ? error && !Object.values(FIELDS).some((fields) => isAbout(error, fields))
      : isAbout(error, FIELDS[field]),
  );
}
