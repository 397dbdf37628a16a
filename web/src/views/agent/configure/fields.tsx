/** Text fields and switches of the settings. */

import { Switch } from "radix-ui";
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";
import { duration } from "../../../components/text/times";
import { useSetting } from "./autosave";
import "./fields.css";

export function Problem({ id, text }: { id?: string; text: string | null }) {
  if (text === null) return null;
  return (
    <p className="bad-text small" role="alert" id={id}>
      {text}
    </p>
  );
}

interface FieldProps {
  label: string;
  value: string;
  onSave: (value: string) => Promise<unknown>; // may throw: the error is shown below the field
  type?: string;
  rows?: number;
  placeholder?: string;
  hint?: ReactNode;
  list?: string;
}

/** A text field, saved on blur or, if it has one line, on Enter; Escape restores the saved text. */
export function Field({ label, value, onSave, type = "text", rows, placeholder, hint, list }: FieldProps) {
  const [text, setText] = useState<string | null>(null); // null: as saved
  const { problem, setProblem, set, unsaved } = useSetting();
  const id = useId();
  const latest = useRef({ text, value, onSave, problem });
  latest.current = { text, value, onSave, problem };
  const write = (written: string | null) => {
    setText(written);
    if (written === null || written === value) unsaved.written.delete(id);
    else unsaved.written.add(id);
  };
  const commit = async () => {
    if (text === null || text === value) {
      write(null);
      setProblem(null);
    } else if (await set(async () => onSave(text))) write(null);
  };
  useEffect(
    () => () => {
      // The Back button causes no blur event, so the text is saved here unless it was refused.
      const { text, value, onSave, problem } = latest.current;
      if (unsaved.written.delete(id) && text !== null && text !== value && problem === null) void onSave(text);
    },
    [unsaved, id],
  );
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !rows) void commit();
    if (event.key === "Escape") {
      write(null);
      setProblem(null);
    }
  };
  const shared = {
    id,
    value: text ?? value,
    placeholder,
    onBlur: () => void commit(),
    onKeyDown,
    "aria-invalid": problem !== null,
    "aria-describedby": problem ? `${id}-problem` : hint ? `${id}-hint` : undefined,
  };
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {rows ? (
        <textarea {...shared} rows={rows} onChange={(event) => write(event.target.value)} />
      ) : (
        <input
          {...shared}
          type={type === "number" ? "text" : type}
          inputMode={type === "number" ? "decimal" : undefined}
          list={list}
          onChange={(event) => write(event.target.value)}
        />
      )}
      <Problem id={`${id}-problem`} text={problem} />
      {hint && (
        <p className="muted small" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

interface DurationFieldProps {
  label: string;
  seconds: number;
  unit: number; // seconds in the unit that the label names
  hint?: ReactNode;
  onSave: (seconds: number) => Promise<unknown>;
}

/** A duration, written in one unit and shown in words below. */
export function DurationField({ label, seconds, unit, hint, onSave }: DurationFieldProps) {
  return (
    <Field
      label={label}
      type="number"
      value={String(Math.round((seconds / unit) * 100) / 100)}
      hint={hint ?? duration(seconds)}
      onSave={async (text) => onSave(Math.round(readNumber(text) * unit))}
    />
  );
}

interface ToggleProps {
  label: string;
  hint?: ReactNode;
  isOn: boolean;
  isLocked?: boolean;
  onChange: (isOn: boolean) => Promise<unknown>;
}

export function Toggle({ label, hint, isOn, isLocked = false, onChange }: ToggleProps) {
  const id = useId();
  const { problem, set } = useSetting();
  return (
    <div className="toggle">
      <Switch.Root
        id={id}
        className="switch"
        checked={isOn}
        disabled={isLocked}
        aria-describedby={problem ? `${id}-problem` : hint ? `${id}-hint` : undefined}
        onCheckedChange={(on) => void set(() => onChange(on))}
      >
        <Switch.Thumb className="switch-thumb" />
      </Switch.Root>
      <div>
        <label htmlFor={id}>{label}</label>
        {hint && (
          <p className="muted small" id={`${id}-hint`}>
            {hint}
          </p>
        )}
        <Problem id={`${id}-problem`} text={problem} />
      </div>
    </div>
  );
}

/** Parse a number, with a decimal point or comma. */
export function readNumber(text: string, min = 0): number {
  const number = Number(text.trim().replace(",", "."));
  if (text.trim() === "" || !Number.isFinite(number) || number < min)
    throw new Error(`Must be a number of at least ${min}, got “${text}”.`);
  return number;
}

/** Parse a number that may be left out; null: it was. */
export function readOptional(text: string, min = 0): number | null {
  return text.trim() === "" ? null : readNumber(text, min);
}
