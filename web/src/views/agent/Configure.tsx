/** An agent's settings. Each is saved as soon as it is set; there is no button to forget. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { RadioGroup, Switch } from "radix-ui";
import { type ReactNode, useEffect, useId, useState } from "react";
import { useLocation } from "wouter";
import { call, explain } from "../../api/client";
import * as queries from "../../api/queries";
import { useAct } from "../../api/queries";
import type { AgentChange, AgentShape, ScheduleChange } from "../../api/rest.generated";
import { Confirm } from "../../components/Dialog";
import { duration } from "../../components/times";
import { MODES, type Mode } from "../../components/words";

type Save = (change: AgentChange) => void;

export function Configure({ agent }: { agent: AgentShape }) {
  const act = useSave(agent.id);
  const save: Save = (change) => act.mutate(change);
  useEffect(() => {
    const show = () => location.hash && document.getElementById(location.hash.slice(1))?.scrollIntoView();
    show();
    window.addEventListener("pushState", show); // the router's own event: the mode chip leads here from here, too
    window.addEventListener("hashchange", show);
    return () => {
      window.removeEventListener("pushState", show);
      window.removeEventListener("hashchange", show);
    };
  }, []);
  return (
    <div className="configure">
      <p className="save-state" role="status">
        {act.isPending ? "Saving…" : act.isError ? <span className="bad-text">Not saved. {explain(act.error)}</span> : act.isSuccess ? "Saved." : ""}
      </p>
      <About agent={agent} save={save} />
      <Model agent={agent} save={save} />
      <Toolsets agent={agent} save={save} />
      <Scheduling agent={agent} save={save} />
      <Limits agent={agent} save={save} />
      <End agent={agent} />
    </div>
  );
}

/** Save one change after the other, and show each at once: what the server makes of it follows. */
function useSave(agentId: string) {
  const client = useQueryClient();
  return useMutation({
    scope: { id: `agent ${agentId}` },
    mutationFn: (body: AgentChange) => call("PATCH /agents/{agent_id}", { path: { agent_id: agentId }, body }),
    onMutate: (change) =>
      client.setQueryData(queries.agents.queryKey, (before) => before?.map((each) => (each.id === agentId ? foresee(each, change) : each))),
    onSettled: () => Promise.all([["agents"], ["wakes"]].map((queryKey) => client.invalidateQueries({ queryKey }))),
  });
}

function foresee(agent: AgentShape, { schedule, budgets, ...plain }: AgentChange): AgentShape {
  return {
    ...agent,
    ...(plain as Partial<AgentShape>),
    schedule: { ...agent.schedule, ...(schedule as Partial<AgentShape["schedule"]>) },
    budgets: { ...agent.budgets, ...budgets },
  };
}

function Section({ id, title, text, children }: { id: string; title: string; text?: string; children: ReactNode }) {
  return (
    <section className="settings-section" id={id} aria-labelledby={`${id}-title`}>
      <div className="section-words">
        <h2 id={`${id}-title`}>{title}</h2>
        {text && <p className="muted">{text}</p>}
      </div>
      <div className="section-fields">{children}</div>
    </section>
  );
}

interface FieldProps {
  label: string;
  value: string;
  onSave: (value: string) => void;
  type?: string;
  rows?: number;
  placeholder?: string;
  hint?: string;
  min?: number;
}

/** Saved when it is left, or with Enter. */
function Field({ label, value, onSave, type = "text", rows, placeholder, hint, min }: FieldProps) {
  const [text, setText] = useState(value);
  const id = useId();
  useEffect(() => setText(value), [value]);
  const commit = () => text !== value && onSave(text);
  const shared = { id, value: text, placeholder, onBlur: commit, "aria-describedby": hint ? `${id}-hint` : undefined };
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {rows ? (
        <textarea {...shared} rows={rows} onChange={(event) => setText(event.target.value)} />
      ) : (
        <input {...shared} type={type} min={min} onChange={(event) => setText(event.target.value)} onKeyDown={(event) => event.key === "Enter" && commit()} />
      )}
      {hint && (
        <p className="muted small" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

function Toggle({ label, hint, isOn, onChange }: { label: string; hint?: string; isOn: boolean; onChange: (isOn: boolean) => void }) {
  const id = useId();
  return (
    <div className="toggle">
      <Switch.Root id={id} className="switch" checked={isOn} onCheckedChange={onChange}>
        <Switch.Thumb className="switch-thumb" />
      </Switch.Root>
      <label htmlFor={id}>
        {label}
        {hint && <span className="muted small">{hint}</span>}
      </label>
    </div>
  );
}

function About({ agent, save }: { agent: AgentShape; save: Save }) {
  return (
    <Section id="about" title="About" text="Who it is, and what it always keeps in mind.">
      <Field label="Name" value={agent.name} onSave={(name) => save({ name })} />
      <Field label="Description" value={agent.description} placeholder="For people; the agent does not read it" onSave={(description) => save({ description })} />
      <Field label="Prompt" rows={5} value={agent.system_prompt} placeholder="What it is told before every conversation" onSave={(system_prompt) => save({ system_prompt })} />
    </Section>
  );
}

const LEVELS = ["off", "low", "medium", "high"] as const;

function Model({ agent, save }: { agent: AgentShape; save: Save }) {
  const id = useId();
  return (
    <Section id="model" title="Model" text="A provider and a name, as in anthropic:NAME or openai-chat:NAME. Keys and addresses are in the server's settings.">
      <Field label="Model" value={agent.model ?? ""} placeholder="the server's own" onSave={(model) => save({ model: model.trim() || null })} />
      <div className="field">
        <label htmlFor={id}>Thinking</label>
        <select id={id} value={agent.thinking_level ?? ""} onChange={(event) => save({ thinking_level: (event.target.value || null) as AgentChange["thinking_level"] })}>
          <option value="">as the model does by itself</option>
          {LEVELS.map((level) => (
            <option key={level}>{level}</option>
          ))}
        </select>
      </div>
      <Toggle label="Plan first" hint="It writes down its steps before it begins." isOn={agent.planning} onChange={(planning) => save({ planning })} />
    </Section>
  );
}

const TOOLSETS = [
  ["recall", "Recalls", "Wake itself in the same session"],
  ["scheduler", "Scheduler", "Book messages and fresh sessions, within a day"],
  ["next_run", "Next run", "Keep one next run of its own"],
  ["database", "Database", "An encrypted database of its own"],
  ["notify", "Notify", "Tell you something"],
  ["files", "Files", "Read and write in its workspace"],
  ["web", "Web", "Fetch pages"],
  ["shell", "Shell", "Run commands; only an owner may grant it"],
  ["subagents", "Subagents", "Hand work to other agents"],
] as const;

function Toolsets({ agent, save }: { agent: AgentShape; save: Save }) {
  const has = new Set(agent.toolsets);
  return (
    <Section id="tools" title="Tools" text="A tool that is off is not shown to the model at all.">
      <div className="toolsets">
        {TOOLSETS.map(([name, label, hint]) => (
          <Toggle
            key={name}
            label={label}
            hint={hint}
            isOn={has.has(name)}
            onChange={(isOn) => save({ toolsets: TOOLSETS.map(([each]) => each).filter((each) => (each === name ? isOn : has.has(each))) })}
          />
        ))}
      </div>
    </Section>
  );
}

// As the server's presets have them; a card says what choosing it would set.
const PRESETS: Record<"ambient" | "reactive" | "project", string> = {
  ambient: "Up to 7 days ahead · at least 1 h apart · 6 a day · quiet 22:00–07:00",
  reactive: "Up to 24 h ahead · at least 5 min apart · 48 a day · no quiet hours",
  project: "Up to 30 days ahead · at least 1 h apart · 4 a day · quiet 22:00–07:00",
};
const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

function Scheduling({ agent, save }: { agent: AgentShape; save: Save }) {
  const { schedule } = agent;
  const set = (change: ScheduleChange) => save({ schedule: change });
  return (
    <Section id="scheduling" title="Scheduling" text="Whether it may set its own alarm, and how far it may go. You may always book for it.">
      <Toggle label="Self-scheduling" hint="Off: the tools that book are gone, and what it booked is cancelled." isOn={agent.self_scheduling} onChange={(self_scheduling) => save({ self_scheduling })} />
      <Field label="Time zone" value={agent.timezone} hint="Quiet hours, days and “today” are in this zone." onSave={(timezone) => save({ timezone })} />
      {agent.self_scheduling && (
        <>
          <RadioGroup.Root className="mode-cards" aria-label="Mode" value={schedule.mode} onValueChange={(mode) => set({ mode: mode as Mode })}>
            {(Object.keys(PRESETS) as (keyof typeof PRESETS)[]).map((mode) => (
              <RadioGroup.Item key={mode} value={mode} className="card mode-card">
                <strong>
                  {MODES[mode].name}
                  {schedule.mode === mode && schedule.is_customised && <span className="badge wait">customised</span>}
                </strong>
                <span>{MODES[mode].tagline}</span>
                <span className="muted small">{PRESETS[mode]}</span>
              </RadioGroup.Item>
            ))}
          </RadioGroup.Root>
          <div className="field-grid">
            <Field label="Furthest ahead (hours)" type="number" min={1} value={hours(schedule.max_horizon_seconds)} hint={duration(schedule.max_horizon_seconds)} onSave={(text) => set({ max_horizon_seconds: seconds(text, 3600) })} />
            <Field label="At least apart (minutes)" type="number" min={0} value={String(Math.round(schedule.min_interval_seconds / 60))} hint={duration(schedule.min_interval_seconds)} onSave={(text) => set({ min_interval_seconds: seconds(text, 60) })} />
            <Field label="Runs a day" type="number" min={0} value={String(schedule.daily_cap)} onSave={(text) => set({ daily_cap: Math.max(0, Number(text) || 0) })} />
          </div>
          <QuietHours from={schedule.quiet_from} to={schedule.quiet_to} set={set} />
          <fieldset className="days">
            <legend>Days it may wake</legend>
            {DAYS.map((day, index) => (
              <label key={day} className="check">
                <input
                  type="checkbox"
                  checked={schedule.days.includes(index)}
                  onChange={(event) => set({ days: event.target.checked ? [...schedule.days, index].sort() : schedule.days.filter((each) => each !== index) })}
                />
                {day}
              </label>
            ))}
          </fieldset>
        </>
      )}
    </Section>
  );
}

function QuietHours({ from, to, set }: { from: string | null; to: string | null; set: (change: ScheduleChange) => void }) {
  const isOn = from !== null && to !== null;
  return (
    <div className="stack">
      <Toggle label="Quiet hours" hint="It is not woken between these times." isOn={isOn} onChange={(on) => set(on ? { quiet_from: "22:00", quiet_to: "07:00" } : { quiet_from: null, quiet_to: null })} />
      {isOn && (
        <div className="row">
          <input type="time" aria-label="Quiet from" value={from} onChange={(event) => event.target.value && set({ quiet_from: event.target.value, quiet_to: to })} />
          to
          <input type="time" aria-label="Quiet to" value={to} onChange={(event) => event.target.value && set({ quiet_from: from, quiet_to: event.target.value })} />
        </div>
      )}
    </div>
  );
}

function Limits({ agent, save }: { agent: AgentShape; save: Save }) {
  const { budgets } = agent;
  const number = (text: string) => (text.trim() === "" ? null : Math.max(0, Number(text) || 0));
  const show = (value: number | null | undefined) => (value === null || value === undefined ? "" : String(value));
  return (
    <Section id="limits" title="Limits and budgets" text="Checked before each call of the model. Empty: no limit.">
      <div className="field-grid">
        <Field label="Steps in a run" type="number" min={1} value={String(agent.max_iterations)} onSave={(text) => save({ max_iterations: Math.max(1, Number(text) || 1) })} />
        <Field label="Minutes a run may last" type="number" min={1} value={String(Math.round(agent.run_limit_seconds / 60))} onSave={(text) => save({ run_limit_seconds: seconds(text, 60) })} />
        <Field label="Tokens a run" type="number" min={0} value={show(budgets.run_tokens)} placeholder="no limit" onSave={(text) => save({ budgets: { run_tokens: number(text) } })} />
        <Field label="Tokens a day" type="number" min={0} value={show(budgets.day_tokens)} placeholder="no limit" onSave={(text) => save({ budgets: { day_tokens: number(text) } })} />
        <Field label="Dollars a run" type="number" min={0} value={show(budgets.run_cost)} placeholder="no limit" onSave={(text) => save({ budgets: { run_cost: number(text) } })} />
        <Field label="Dollars a day" type="number" min={0} value={show(budgets.day_cost)} placeholder="no limit" onSave={(text) => save({ budgets: { day_cost: number(text) } })} />
      </div>
    </Section>
  );
}

function End({ agent }: { agent: AgentShape }) {
  const [isAsking, setAsking] = useState(false);
  const [, navigate] = useLocation();
  const remove = useAct(
    () => call("DELETE /agents/{agent_id}", { path: { agent_id: agent.id } }),
    [["agents"], ["wakes"]],
    () => navigate("/ui/agents"),
  );
  return (
    <Section id="end" title="End" text="Its wakes are cancelled and its runs stopped. Its sessions can still be read.">
      <div>
        <button type="button" className="danger" onClick={() => setAsking(true)}>
          Delete {agent.name}
        </button>
      </div>
      {isAsking && (
        <Confirm
          title={`Delete ${agent.name}?`}
          text="Its wakes are cancelled and its runs stopped. Its sessions can still be read."
          action="Delete"
          error={remove.isError ? explain(remove.error) : null}
          onConfirm={() => remove.mutate(undefined)}
          onClose={() => setAsking(false)}
        />
      )}
    </Section>
  );
}

function hours(seconds: number): string {
  return String(Math.round((seconds / 3600) * 100) / 100);
}

function seconds(text: string, unit: number): number {
  return Math.max(1, Math.round((Number(text) || 0) * unit));
}
