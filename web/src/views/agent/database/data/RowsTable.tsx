/** The rows of a result, as a table. */

import type { Cell } from "../../../../api/database";
import { Value } from "./Value";

interface Props {
  label: string;
  columns: string[];
  rows: Cell[][];
  max?: number; // rows shown
}

export function RowsTable({ label, columns, rows, max = 200 }: Props) {
  if (rows.length === 0) return <p className="muted">No rows.</p>;
  return (
    <>
      <div className="table-scroll" tabIndex={0} role="group" aria-label={label}>
        <table className="data-table">
          <thead>
            <tr>
              {columns.map((name, place) => (
                <th key={place} scope="col" className={typeof rows[0]?.[place] === "number" ? "is-number" : undefined}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, max).map((row, number) => (
              <tr key={number}>
                {row.map((value, place) => (
                  <td key={place} className={typeof value === "number" ? "is-number" : undefined}>
                    <Value value={value} name={columns[place] ?? ""} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > max && (
        <p className="muted small">
          The first {max} of {rows.length.toLocaleString()} rows.
        </p>
      )}
    </>
  );
}
