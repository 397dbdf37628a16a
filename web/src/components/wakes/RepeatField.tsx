/** The field for repeating a run: once, at an interval, or by a cron rule. */

import type { ReactNode } from "react";
import type { WakeShape } from "../../api/rest.generated";

const UNITS = { seconds: 1, minutes: 60, hours: 3600, days: 86_400 } as const;
type Unit = keyof typeof UNITS;
const UNIT_NAMES = Object.keys(UNITS) as Unit[];

export interface Repetition {
  kind: "once" | "interval" | "cron";
  count: number;
  unit: Unit;
  cron: string;
}

/** Return how a scheduled run repeats; the unit is the largest that its interval is a whole number of. */
export function repetitionOf(wake: WakeShape | null): Repetition {
  const seconds = wake?.interval_seconds ?? 1800;
  const unit = UNIT_NAMES.findLast((name) => seconds % UNITS[name] === 0) ?? "seconds";
  const kind = wake?.cron ? "cron" : wake?.call_type === "recurring" ? "interval" : "once";
  return { kind, unit, count: seconds / UNITS[unit], cron: wake?.cron ?? "0 9 * * *" };
}

/** Return the fields of a request for it. */
export function ruleOf({ kind, count, unit, cron }: Repetition) {
  if (kind === "cron") return { cron };
  return kind === "interval" ? { interval_seconds: Math.round(count * UNITS[unit]) } : {};
}

interface Props {
  value: Repetition;
  onChange: (next: Repetition) => void;
  mayBeOnce: boolean;
  described: object; // attributes that name its error
  problem: ReactNode;
}

export function RepeatField({ value, onChange, mayBeOnce, described, problem }: Props) {
  const set = (change: Partial<Repetition>) => onChange({ ...value, ...change });
  return (
    <div className="field">
      <span id="repeat-label">Repeat</span>
      <div className="row">
        <select
          aria-labelledby="repeat-label"
          value={value.kind}
          onChange={(event) => set({ kind: event.target.value as Repetition["kind"] })}
        >
          {mayBeOnce && <option value="once">Once</option>}
          <option value="interval">Every…</option>
          <option value="cron">Cron rule</option>
        </select>
        {value.kind === "interval" && (
          <>
            <input
              className="short"
              type="number"
              min={1}
              value={value.count}
              aria-label="How many"
              onChange={(event) => set({ count: Number(event.target.value) || 1 })}
              {...described}
            />
            <select
              aria-label="Unit"
              value={value.unit}
              onChange={(event) => set({ unit: event.target.value as Unit })}
            >
              {UNIT_NAMES.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </>
        )}
        {value.kind === "cron" && (
          <input
            className="mono"
            value={value.cron}
            aria-label="Cron rule"
            onChange={(event) => set({ cron: event.target.value })}
            {...described}
          />
        )}
      </div>
      {problem}
    </div>
  );
}
