/** Text fields of a model's form, with the server's refusal at the field. */

import type { ReactNode } from "react";
import type { ProviderShape } from "../../api/rest.generated";
import { MAX_LENGTH } from "../../api/server.generated";
import { FieldError } from "../ui/FieldError";
import { NUMBERS } from "./draft";
import { refusalText } from "./modelErrors";

interface FieldProps {
  id: string;
  value: string;
  error: unknown;
  onChange: (text: string) => void;
}

interface TextFieldProps extends FieldProps {
  label: string;
  hint?: ReactNode;
  placeholder?: string;
  maxLength?: number;
  isNumber?: boolean;
}

export function TextField({ id, label, value, error, hint, isNumber, onChange, ...rest }: TextFieldProps) {
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        {...rest}
        id={id}
        value={value}
        type={isNumber ? "number" : "text"}
        min={isNumber ? 0 : undefined}
        step={isNumber ? "any" : undefined}
        autoComplete="off"
        spellCheck={false}
        aria-invalid={Boolean(error)}
        aria-describedby={error ? `${id}-error` : hint ? `${id}-hint` : undefined}
        onChange={(event) => onChange(event.target.value)}
      />
      <FieldError id={`${id}-error`} error={error} toText={refusalText} />
      {hint && (
        <p className="muted small" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

interface KeyFieldProps extends FieldProps {
  provider: ProviderShape;
  isSaved: boolean;
  onEnter: (() => void) | null; // instead of saving
}

/** The key: written, sent once, and never shown again. */
export function KeyField({ id, provider, isSaved, value, error, onChange, onEnter }: KeyFieldProps) {
  return (
    <div className="field">
      <label htmlFor={id}>{provider.needs_key ? "Key" : "Key (if it needs one)"}</label>
      <input
        id={id}
        value={value}
        type="password"
        autoComplete="off"
        placeholder={isSaved ? "Key saved. Leave empty to keep it" : undefined}
        aria-invalid={Boolean(error)}
        aria-describedby={error ? `${id}-error ${id}-hint` : `${id}-hint`}
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || !onEnter) return;
          event.preventDefault();
          onEnter();
        }}
      />
      <FieldError id={`${id}-error`} error={error} toText={refusalText} />
      <p className="muted small" id={`${id}-hint`}>
        Stored encrypted, sent only to this provider, and never shown again.{" "}
        {provider.key_page && (
          <a href={provider.key_page} target="_blank" rel="noopener noreferrer">
            Get a key
          </a>
        )}
      </p>
    </div>
  );
}

const NUMBER_LABELS = {
  context_window: "Context window (tokens)",
  output_limit: "Output limit (tokens)",
  input_price: "Input price ($ per million tokens)",
  output_price: "Output price ($ per million tokens)",
};

interface MoreProps {
  isNew: boolean; // a name cannot be changed later
  of: (field: "name" | (typeof NUMBERS)[number]) => FieldProps;
}

/** Fields that are usually left empty: the provider's own values are used then. */
export function MoreFields({ isNew, of }: MoreProps) {
  return (
    <>
      {isNew && (
        <TextField
          {...of("name")}
          label="Name"
          maxLength={MAX_LENGTH.NewModel.name}
          hint="For agents and commands: a-z, 0-9, dot, hyphen, underscore. Empty: made from the model."
        />
      )}
      <p className="muted small">Leave these empty to use what the provider says.</p>
      <div className="field-grid">
        {NUMBERS.map((name) => (
          <TextField key={name} {...of(name)} label={NUMBER_LABELS[name]} isNumber />
        ))}
      </div>
    </>
  );
}
