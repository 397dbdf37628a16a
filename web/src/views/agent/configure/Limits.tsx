import { useQuery } from "@tanstack/react-query";
import * as queries from "../../../api/queries";
import type { AgentUsage } from "../../../api/rest.generated";
import { count } from "../../../components/text/labels";
import { Time } from "../../../components/text/times";
import { SettingsSection } from "../../../components/ui/SettingsSection";
import type { PartProps } from "./autosave";
import { DurationField, Field, readNumber, readOptional } from "./fields";
import "./Limits.css";

const BUDGETS = [
  { name: "run_tokens", label: "Tokens per run", isWhole: true },
  { name: "run_cost", label: "Cost limit per run ($)", isWhole: false },
  { name: "day_tokens", label: "Tokens per day", isWhole: true },
  { name: "day_cost", label: "Cost limit per day ($)", isWhole: false },
] as const;

function readLimit(text: string, isWhole: boolean, min = 0): number | null {
  const amount = readOptional(text, min);
  return isWhole && amount !== null ? Math.round(amount) : amount;
}

export function Limits({ agent, save }: PartProps) {
  const usage = useQuery(queries.usage(agent.id)).data;
  return (
    <SettingsSection
      id="limits"
      title="Limits and budgets"
      text="Token and cost limits are checked before each model call. Close to one, the agent is asked to wrap up and schedule the rest."
    >
      <div className="field-grid">
        <Field
          label="Steps per run"
          type="number"
          value={String(agent.max_iterations)}
          onSave={async (text) => save({ max_iterations: Math.round(readNumber(text, 1)) })}
        />
        <DurationField
          label="Time per run (minutes)"
          seconds={agent.run_limit_seconds}
          unit={60}
          onSave={(run_limit_seconds) => save({ run_limit_seconds })}
        />
        {BUDGETS.map(({ name, label, isWhole }) => (
          <Field
            key={name}
            label={label}
            type="number"
            value={String(agent.budgets[name] ?? "")}
            placeholder="no limit"
            onSave={async (text) => save({ budgets: { [name]: readLimit(text, isWhole) } })}
          />
        ))}
        <Field
          label="Database size limit (MB)"
          type="number"
          value={String(agent.database_mb ?? "")}
          placeholder="server default"
          onSave={async (text) => save({ database_mb: readLimit(text, true, 1) })}
        />
      </div>
      {usage && <Today usage={usage} zone={agent.zone} />}
    </SettingsSection>
  );
}

function Today({ usage, zone }: { usage: AgentUsage; zone: string }) {
  const { today, budgets } = usage;
  return (
    <div className="stack today" role="group" aria-label="Used today">
      <p>
        <strong>Today</strong>{" "}
        <span className="muted small">
          since <Time at={today.since} zone={zone} /> · {count(today.runs, "run")},{" "}
          {count(today.model_calls, "model call")}
        </span>
      </p>
      <UsageMeter
        what="Tokens"
        used={today.tokens}
        of={budgets.day_tokens ?? null}
        show={(value) => value.toLocaleString()}
      />
      <UsageMeter
        what="Cost"
        used={today.cost}
        of={budgets.day_cost ?? null}
        show={(value) => `$${value.toFixed(value && value < 1 ? 4 : 2)}`}
        unknown={
          today.unpriced_runs === 0
            ? null
            : today.unpriced_runs === today.runs
              ? "unknown price"
              : `and ${count(today.unpriced_runs, "run")} with an unknown price`
        }
      />
    </div>
  );
}

interface MeterProps {
  what: string;
  used: number;
  of: number | null; // null: no limit
  show: (value: number) => string;
  unknown?: string | null; // what is missing in `used`
}

function UsageMeter({ what, used, of, show, unknown = null }: MeterProps) {
  const isSpent = of !== null && used >= of;
  return (
    <div className="used">
      <span>{what}</span>
      {of !== null && (
        <meter
          aria-label={`${what} used today`}
          min={0}
          max={of || 1}
          high={of * 0.8}
          value={Math.min(used, of || 1)}
        />
      )}
      <span className={isSpent ? "bad-text" : "muted"}>
        {(unknown === null || used > 0) && show(used)} {unknown}
        {of !== null && ` of ${show(of)}`}
        {isSpent && ", used up until midnight"}
      </span>
    </div>
  );
}
