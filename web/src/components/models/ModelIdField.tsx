/** The id of a model: typed, or chosen from its provider's own list. */

import type { ListedShape } from "../../api/rest.generated";
import { count } from "../text/labels";
import { FieldError } from "../ui/FieldError";
import { refusalText } from "./modelErrors";

const MAX_SHOWN = 50;

interface Props {
  id: string;
  value: string;
  example: string;
  listed: ListedShape[] | undefined; // undefined: the provider was not asked
  asked: string | null; // the endpoint that is being asked for its models
  onStop: () => void;
  error: unknown;
  onChange: (id: string) => void;
  onList: (() => void) | null; // null: the provider has no list
}

export function ModelIdField({ id, value, example, listed, asked, error, onChange, onList, onStop }: Props) {
  return (
    <div className="field">
      <label htmlFor={id}>Model</label>
      <div className="row">
        <input
          id={id}
          className="mono"
          value={value}
          placeholder={listed ? "Search, or type a name" : example}
          autoComplete="off"
          spellCheck={false}
          aria-invalid={Boolean(error)}
          aria-describedby={error ? `${id}-error` : undefined}
          onChange={(event) => onChange(event.target.value)}
        />
        {onList && (
          <button type="button" onClick={asked === null ? onList : onStop}>
            {asked === null ? "List models" : "Stop asking"}
          </button>
        )}
      </div>
      <p className="muted small asked" role="status" hidden={asked === null}>
        {asked !== null && <span className="shimmer">Asking {asked} for its models…</span>}
      </p>
      <FieldError id={`${id}-error`} error={error} toText={refusalText} />
      {listed && <Choices listed={listed} value={value} onChange={onChange} />}
    </div>
  );
}

function Choices({ listed, value, onChange }: Pick<Props, "value" | "onChange"> & { listed: ListedShape[] }) {
  const isChosen = listed.some((each) => each.id === value);
  const words = isChosen ? [] : value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = listed.filter(({ id, label }) =>
    words.every((word) => `${id} ${label ?? ""}`.toLowerCase().includes(word)),
  );
  return (
    <>
      <p className="muted small" role="status">
        {found.length > MAX_SHOWN
          ? `${count(found.length, "model")}, the first ${MAX_SHOWN} below. Type to search.`
          : found.length > 0 || listed.length === 0
            ? count(found.length, "model")
            : "Not in the provider's list. It is used as you typed it if the provider has it."}
      </p>
      {found.length > 0 && (
        <ul className="model-list" aria-label="The provider's models" tabIndex={0}>
          {found.slice(0, MAX_SHOWN).map((each) => (
            <li key={each.id}>
              <button
                type="button"
                className="quiet"
                aria-pressed={each.id === value}
                onClick={() => onChange(each.id)}
              >
                <span className="mono">{each.id}</span>
                <span className="muted small">{listedFacts(each)}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** Facts about a model from its provider's list. */
export function listedFacts({ context_window, has_tools, images }: ListedShape): string {
  return [
    context_window && `${context_window.toLocaleString()} tokens`,
    has_tools === false && "cannot call tools",
    images && "reads images",
  ]
    .filter(Boolean)
    .join(" · ");
}
