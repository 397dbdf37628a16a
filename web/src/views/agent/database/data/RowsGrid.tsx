/** The rows of a table; a click on one opens it. */

import type { MouseEvent } from "react";
import type { AgentShape, ColumnShape, TableShape } from "../../../../api/rest.generated";
import { Icon } from "../../../../components/ui/Icon";
import { nextOrder, type Order } from "./address";
import { type Row, title } from "./row/row";
import { CellValue, isYesOrNo } from "./TypedValue";
import { isNumeric } from "./values";

export interface RowsProps {
  agent: AgentShape;
  table: TableShape;
  columns: ColumnShape[];
  rows: Row[];
  selected: ReadonlySet<number>;
  onSelect: (selected: ReadonlySet<number>) => void;
  onOpen: (id: number) => void;
}

interface Props extends RowsProps {
  order: Order;
  onOrder: (order: Order) => void;
}

/** Whether a click on a row opens it: not on a control or a dialog in it, nor at the end of a selection. */
export function isForRow(event: MouseEvent<HTMLElement>): boolean {
  const target = event.target as HTMLElement;
  return !target.closest("button, input, a, label, select, dialog") && getSelection()?.type !== "Range";
}

export function toggled(before: ReadonlySet<number>, id: number, isIn: boolean): ReadonlySet<number> {
  const next = new Set(before);
  isIn ? next.add(id) : next.delete(id);
  return next;
}

export function RowsGrid({ agent, table, columns, rows, selected, onSelect, onOpen, order, onOrder }: Props) {
  return (
    <div className="table-scroll is-tall" tabIndex={0} role="group" aria-label={`Rows of ${table.name}`}>
      <table className="data-table">
        <thead>
          <tr>
            <th className="pick">
              <input
                type="checkbox"
                aria-label="All rows on this page"
                checked={rows.every((row) => selected.has(row.id))}
                onChange={(event) => onSelect(new Set(event.target.checked ? rows.map((row) => row.id) : []))}
              />
            </th>
            {columns.map((column) => (
              <ColumnHead key={column.name} column={column} order={order} onOrder={onOrder} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr
              key={row.id}
              className={row.isDeleted ? "opens is-deleted" : "opens"}
              onClick={(event) => isForRow(event) && onOpen(row.id)}
            >
              <td className="pick">
                <input
                  type="checkbox"
                  aria-label={`Row ${row.id}`}
                  checked={selected.has(row.id)}
                  onChange={(event) => onSelect(toggled(selected, row.id, event.target.checked))}
                />
                <button
                  type="button"
                  className="quiet icon-only tiny"
                  aria-label={`Open row ${row.id}`}
                  onClick={() => onOpen(row.id)}
                >
                  <Icon name="chevron" size={15} />
                </button>
              </td>
              {columns.map((column) => (
                <td key={column.name} className={classOf(row, column)}>
                  <CellValue agent={agent} table={table} row={row} column={column} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function classOf(row: Row, column: ColumnShape): string | undefined {
  if (column.system) return "is-system";
  const value = row.get(column.name);
  return (isNumeric(column) || typeof value === "number") && !isYesOrNo(column, value) ? "is-number" : undefined;
}

function ColumnHead({ column, order, onOrder }: { column: ColumnShape } & Pick<Props, "order" | "onOrder">) {
  const isSorted = order.sort === column.name;
  return (
    <th
      scope="col"
      className={isNumeric(column) ? "is-number" : undefined}
      aria-sort={!isSorted ? undefined : order.isDown ? "descending" : "ascending"}
    >
      <button type="button" className="quiet small sort" onClick={() => onOrder(nextOrder(order, column.name))}>
        {title(column)}
        <span aria-hidden="true">{!isSorted ? "" : order.isDown ? " ↓" : " ↑"}</span>
      </button>
    </th>
  );
}
