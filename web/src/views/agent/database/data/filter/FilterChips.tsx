/** The conditions that are in force, each with a button that removes it. */

import type { ColumnShape } from "../../../../../api/rest.generated";
import { Icon } from "../../../../../components/ui/Icon";
import { type Condition, conditionText } from "./conditions";
import "./Filter.css";

interface Props {
  columns: ColumnShape[];
  conditions: Condition[];
  onChange: (conditions: Condition[]) => void;
}

export function FilterChips({ columns, conditions, onChange }: Props) {
  if (conditions.length === 0) return null;
  return (
    <ul className="row filter-chips" aria-label="Conditions">
      {conditions.map((each, place) => {
        const text = conditionText(each, columns);
        return (
          <li key={place} className="chip">
            {text}
            <button
              type="button"
              className="quiet icon-only tiny"
              aria-label={`Remove “${text}”`}
              onClick={() => onChange(conditions.filter((_, other) => other !== place))}
            >
              <Icon name="close" size={13} />
            </button>
          </li>
        );
      })}
    </ul>
  );
}
