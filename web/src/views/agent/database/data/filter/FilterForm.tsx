/** The conditions of the filter, which must all be met. */

import { useState } from "react";
import type { ColumnShape } from "../../../../../api/rest.generated";
import { Form } from "../../../../../components/ui/Form";
import { Icon } from "../../../../../components/ui/Icon";
import { title } from "../row/row";
import { isNumeric, kindOf } from "../values";
import { type Condition, firstCondition, needsValue, newCondition, type Operator, operatorsOf } from "./conditions";
import "./Filter.css";

const MAX_CONDITIONS = 10;

interface Props {
  columns: ColumnShape[];
  conditions: Condition[];
  onApply: (conditions: Condition[]) => void;
}

export function FilterForm({ columns, conditions, onApply }: Props) {
  const [draft, setDraft] = useState(() => {
    const first = firstCondition(columns);
    return conditions.length > 0 || !first ? conditions : [first];
  });
  const put = (place: number, condition: Condition) =>
    setDraft(draft.map((each, other) => (other === place ? condition : each)));
  const remove = (place: number) => setDraft(draft.filter((_, other) => other !== place));
  const last = columns.find((each) => each.name === draft.at(-1)?.column) ?? columns[0];
  return (
    <Form className="data-filter" role="search" aria-label="Filter" onSubmit={() => onApply(draft)}>
      {draft.map((condition, place) => (
        <div key={place} className="condition" role="group" aria-label={`Condition ${place + 1}`}>
          <span className="muted condition-word">{place === 0 ? "Where" : "and"}</span>
          <ConditionFields columns={columns} condition={condition} onChange={(changed) => put(place, changed)} />
          <button
            type="button"
            className="quiet icon-only"
            aria-label={`Remove condition ${place + 1}`}
            onClick={() => remove(place)}
          >
            <Icon name="close" size={15} />
          </button>
        </div>
      ))}
      <div className="row">
        {last && draft.length < MAX_CONDITIONS && (
          <button type="button" className="quiet" onClick={() => setDraft([...draft, newCondition(last)])}>
            <Icon name="plus" size={15} />
            Add condition
          </button>
        )}
        <span className="push row">
          {conditions.length > 0 && (
            <button type="button" className="quiet" onClick={() => onApply([])}>
              Clear
            </button>
          )}
          <button type="submit" className="primary">
            Apply
          </button>
        </span>
      </div>
    </Form>
  );
}

interface FieldProps {
  columns: ColumnShape[];
  condition: Condition;
  onChange: (condition: Condition) => void;
}

function ConditionFields({ columns, condition, onChange }: FieldProps) {
  const column = columns.find((each) => each.name === condition.column);
  if (!column) return null;
  const choose = (name: string) => {
    const chosen = columns.find((each) => each.name === name);
    if (chosen) onChange(newCondition(chosen));
  };
  return (
    <>
      <select aria-label="Column" value={column.name} onChange={(event) => choose(event.target.value)}>
        {columns.map((each) => (
          <option key={each.name} value={each.name}>
            {title(each)}
          </option>
        ))}
      </select>
      <select
        aria-label="Comparison"
        value={condition.operator}
        onChange={(event) => onChange({ ...condition, operator: event.target.value as Operator })}
      >
        {operatorsOf(column).map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
      {needsValue(condition.operator) && (
        <ConditionValue column={column} condition={condition} onChange={(value) => onChange({ ...condition, value })} />
      )}
    </>
  );
}

interface ValueProps {
  column: ColumnShape;
  condition: Condition;
  onChange: (value: string) => void;
}

function ConditionValue({ column, condition: { operator, value }, onChange }: ValueProps) {
  const kind = column.system ? "datetime" : kindOf(column);
  if (kind === "boolean")
    return (
      <select aria-label="Value" value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="1">yes</option>
        <option value="0">no</option>
      </select>
    );
  const isDay = (kind === "date" || kind === "datetime") && operator !== "contains";
  return (
    <input
      type={isDay ? "date" : "search"}
      inputMode={isNumeric(column) ? "decimal" : undefined}
      aria-label="Value"
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}
