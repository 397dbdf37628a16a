/** The rows of a table as cards, for phones; a tap on one opens it. */

import { isForRow, type RowsProps, toggled } from "./RowsGrid";
import { nameColumn, title } from "./row/row";
import { CellValue } from "./TypedValue";
import { plain } from "./Value";

const MAX_SHOWN = 5; // columns besides the name; the others are in the row's dialog

export function RowCards({ agent, table, columns, rows, selected, onSelect, onOpen }: RowsProps) {
  const named = nameColumn(columns);
  return (
    <ul className="row-cards" aria-label={`Rows of ${table.name}`}>
      {rows.map((row) => {
        const filled = columns.filter((each) => each !== named && !each.primary_key && row.get(each.name) !== null);
        const name = named && row.get(named.name) !== null ? plain(row.get(named.name)) : "";
        return (
          // biome-ignore lint/a11y/useKeyWithClickEvents: its heading is a button that opens it too
          <li
            key={row.id}
            className={row.isDeleted ? "card row-card is-deleted" : "card row-card"}
            onClick={(event) => isForRow(event) && onOpen(row.id)}
          >
            <div className="row-card-head">
              <label className="pick">
                <input
                  type="checkbox"
                  aria-label={`Row ${row.id}`}
                  checked={selected.has(row.id)}
                  onChange={(event) => onSelect(toggled(selected, row.id, event.target.checked))}
                />
              </label>
              <button type="button" className="quiet row-card-name" onClick={() => onOpen(row.id)}>
                <span className="hidden">Open row {row.id}: </span>
                <span>{name.slice(0, 200) || `#${row.id}`}</span>
              </button>
            </div>
            <dl>
              {filled.slice(0, MAX_SHOWN).map((column) => (
                <div key={column.name} className={column.system ? "is-system" : undefined}>
                  <dt>{title(column)}</dt>
                  <dd>
                    <CellValue agent={agent} table={table} row={row} column={column} />
                  </dd>
                </div>
              ))}
            </dl>
          </li>
        );
      })}
    </ul>
  );
}
