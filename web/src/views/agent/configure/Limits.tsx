import { useQuery } from "@tanstack/react-query";
import * as queries from "../../../api/queries";
import type { AgentUsage } from "../../../api/rest.generated";
import { SettingsSection } from "../../../components/SettingsSection";
import { duration, Time } from "../../../components/times";
import type { PartProps } from "./autosave";
import { Field, readNumber } from "./fields";
import "./Limits.css";

export function Limits({ agent, save }: PartProps) {
  const { budgets } = agent;
  const usage = useQuery(queries.usage(agent.id)).data;
  const limit = (text: string) => (text.trim() === "" ? null : readNumber(text));
  const whole = (text: string) => (text.trim() === "" ? null : Math.round(readNumber(text)));
  const show = (value: number | null | undefined) => (value === null || value === undefined ? "" : String(value));
  return (
    <SettingsSection
      id="limits"
      title="Limits and budgets"
      text="Checked before each model call. Empty: no limit. Close to a limit the agent is told to wrap up and schedule the rest."
    >
      <div className="field-grid">
        <Field
          label="Steps per run"
          type="number"
          value={String(agent.max_iterations)}
          onSave={async (text) => save({ max_iterations: Math.round(readNumber(text, 1)) })}
        />
        <Field
          label="Time limit per run (minutes)"
          type="number"
          value={String(Math.round((agent.run_limit_seconds / 60) * 100) / 100)}
          hint={duration(agent.run_limit_seconds)}
          onSave={async (text) => save({ run_limit_seconds: Math.round(readNumber(text) * 60) })}
        />
        <Field
          label="Tokens per run"
          type="number"
          value={show(budgets.run_tokens)}
          placeholder="no limit"
          onSave={async (text) => save({ budgets: { run_tokens: whole(text) } })}
        />
        <Field
          label="Cost limit per run ($)"
          type="number"
          value={show(budgets.run_cost)}
          placeholder="no limit"
          onSave={async (text) => save({ budgets: { run_cost: limit(text) } })}
        />
        <Field
          label="Tokens per day"
          type="number"
          value={show(budgets.day_tokens)}
          placeholder="no limit"
          onSave={async (text) => save({ budgets: { day_tokens: whole(text) } })}
        />
        <Field
          label="Cost limit per day ($)"
          type="number"
          value={show(budgets.day_cost)}
          placeholder="no limit"
          onSave={async (text) => save({ budgets: { day_cost: limit(text) } })}
        />
        <Field
          label="Database size limit (MB)"
          type="number"
          value={show(agent.database_mb)}
          placeholder="server default"
          onSave={async (text) => save({ database_mb: text.trim() === "" ? null : Math.round(readNumber(text, 1)) })}
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
          since <Time at={today.since} zone={zone} /> · {today.runs} {today.runs === 1 ? "run" : "runs"},{" "}
          {today.model_calls} model calls
        </span>
      </p>
      <Used
        what="Tokens"
        used={today.tokens}
        of={budgets.day_tokens ?? null}
        show={(value) => value.toLocaleString()}
      />
      <Used
        what="Cost"
        used={today.cost}
        of={budgets.day_cost ?? null}
        show={(value) => `$${value.toFixed(value && value < 1 ? 4 : 2)}`}
      />
    </div>
  );
}

function Used({
  what,
  used,
  of,
  show,
}: {
  what: string;
  used: number;
  of: number | null;
  show: (value: number) => string;
}) {
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
        {show(used)}
        {of !== null && ` of ${show(of)}`}
        {isSpent && ", used up until midnight"}
      </span>
    </div>
  );
}
