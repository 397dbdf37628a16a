import { RadioGroup } from "radix-ui";
import type { AgentShape, ScheduleChange } from "../../../api/rest.generated";
import { MODES } from "../../../components/text/labels";
import { duration } from "../../../components/text/times";
import { ZoneNames } from "../../../components/text/zone";
import { SettingsSection } from "../../../components/ui/SettingsSection";
import { type PartProps, useSetting } from "./autosave";
import { DurationField, Field, Problem, readNumber, Toggle } from "./fields";
import "./Scheduling.css";

type ScheduleShape = AgentShape["schedule"];
type Bounds = Omit<ScheduleShape, "mode" | "is_customised" | "days">;
type NumberName = "max_horizon_seconds" | "min_interval_seconds" | "daily_cap";
type Preset = "ambient" | "reactive" | "project";

const NIGHT = { quiet_from: MODES.ambient.bounds.quiet_from, quiet_to: MODES.ambient.bounds.quiet_to };
const PRESETS: Preset[] = ["ambient", "reactive", "project"];
const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

function summary(bounds: Bounds): string {
  const quiet = bounds.quiet_from ? `quiet ${bounds.quiet_from}–${bounds.quiet_to}` : "no quiet hours";
  return `Up to ${duration(bounds.max_horizon_seconds)} ahead · at least ${duration(bounds.min_interval_seconds)} apart · ${bounds.daily_cap} a day · ${quiet}`;
}

export function Scheduling({ agent, save }: PartProps) {
  return (
    <SettingsSection
      id="scheduling"
      title="Scheduling"
      text="Whether it may schedule its own runs, and within which limits. You can always schedule runs for it."
    >
      <Toggle
        label="Self-scheduling"
        hint="When off, the agent can't schedule runs, and its pending ones are cancelled."
        isOn={agent.self_scheduling}
        onChange={(self_scheduling) => save({ self_scheduling })}
      />
      <Field
        label="Time zone"
        value={agent.timezone ?? ""}
        placeholder={agent.is_zone_known ? `${agent.zone} (yours)` : "unknown"}
        list="time-zones"
        hint={
          agent.is_zone_known
            ? "Quiet hours, days and “today” are in this zone. Empty: your own."
            : "Neither this agent nor you have a time zone yet: quiet hours, days and “today” are in UTC, and times of day are not accepted."
        }
        onSave={(timezone) => save({ timezone: timezone.trim() || null })}
      />
      <ZoneNames />
      {agent.self_scheduling && <BoundsOf schedule={agent.schedule} set={(schedule) => save({ schedule })} />}
    </SettingsSection>
  );
}

type Set = (change: ScheduleChange) => Promise<unknown>;

function BoundsOf({ schedule, set }: { schedule: ScheduleShape; set: Set }) {
  const preset = schedule.mode === "manual" ? null : MODES[schedule.mode].bounds;
  const mode = useSetting();
  const choose = (name: string) => void mode.set(() => set({ mode: name as Preset }));
  /** Show the mode's own value where the setting differs from it. */
  const hint = (name: NumberName, show?: (value: number) => string) =>
    preset && preset[name] !== schedule[name] ? (
      <>
        {show && `${show(schedule[name])} · `}
        <span className="changed">
          {MODES[schedule.mode].label}: {show ? show(preset[name]) : preset[name]}
        </span>
      </>
    ) : undefined;
  return (
    <>
      <p className="muted small">
        The mode and its limits apply to the next runs that it schedules itself, “How far ahead” also to those that you
        schedule. Runs in an existing session are not limited.
      </p>
      <RadioGroup.Root className="mode-cards" aria-label="Mode" value={schedule.mode} onValueChange={choose}>
        {PRESETS.map((name) => {
          const isCustomised = schedule.mode === name && schedule.is_customised;
          return (
            <RadioGroup.Item key={name} value={name} className="card mode-card">
              <strong>
                {MODES[name].label}
                {isCustomised && <span className="badge wait">customised</span>}
              </strong>
              <span>{MODES[name].hint}</span>
              <span className="muted small">{summary(isCustomised ? schedule : MODES[name].bounds)}</span>
            </RadioGroup.Item>
          );
        })}
      </RadioGroup.Root>
      <Problem text={mode.problem} />
      {schedule.is_customised && preset && (
        <p>
          <button type="button" className="small" onClick={() => choose(schedule.mode)}>
            Reset to {MODES[schedule.mode].label}
          </button>
        </p>
      )}
      <div className="field-grid">
        <DurationField
          label="How far ahead (hours)"
          seconds={schedule.max_horizon_seconds}
          unit={3600}
          hint={hint("max_horizon_seconds", duration)}
          onSave={(max_horizon_seconds) => set({ max_horizon_seconds })}
        />
        <DurationField
          label="Minimum gap (minutes)"
          seconds={schedule.min_interval_seconds}
          unit={60}
          hint={hint("min_interval_seconds", duration)}
          onSave={(min_interval_seconds) => set({ min_interval_seconds })}
        />
        <Field
          label="Runs per day"
          type="number"
          value={String(schedule.daily_cap)}
          hint={hint("daily_cap")}
          onSave={async (text) => set({ daily_cap: Math.round(readNumber(text)) })}
        />
      </div>
      <QuietHours from={schedule.quiet_from} to={schedule.quiet_to} set={set} />
      <AllowedDays days={schedule.days} set={set} />
    </>
  );
}

function QuietHours({ from, to, set }: { from: string | null; to: string | null; set: Set }) {
  const isOn = from !== null && to !== null;
  return (
    <div className="stack">
      <Toggle
        label="Quiet hours"
        hint="A next run that falls between these times waits until they are over."
        isOn={isOn}
        onChange={(on) => set(on ? NIGHT : { quiet_from: null, quiet_to: null })}
      />
      {isOn && (
        <div className="field-grid">
          <Field
            label="Quiet from"
            type="time"
            value={from}
            onSave={(quiet_from) => set({ quiet_from, quiet_to: to })}
          />
          <Field label="Quiet to" type="time" value={to} onSave={(quiet_to) => set({ quiet_from: from, quiet_to })} />
        </div>
      )}
    </div>
  );
}

function AllowedDays({ days, set }: { days: number[]; set: Set }) {
  const setting = useSetting();
  const change = (index: number, isOn: boolean) =>
    void setting.set(() => set({ days: isOn ? [...days, index].sort() : days.filter((each) => each !== index) }));
  return (
    <fieldset className="days">
      <legend>Days it may run</legend>
      {DAYS.map((day, index) => (
        <label key={day} className="check">
          <input
            type="checkbox"
            checked={days.includes(index)}
            onChange={(event) => change(index, event.target.checked)}
          />
          {day}
        </label>
      ))}
      <Problem text={setting.problem} />
    </fieldset>
  );
}
