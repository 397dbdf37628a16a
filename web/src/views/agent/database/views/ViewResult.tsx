/** The result of a view, as a chart if it can be drawn as one, else as a table. */

import type { Cell, Render } from "../../../../api/database";
import { RowsTable } from "../data/RowsTable";
import { plain, Value } from "../data/Value";
import { Bars, Lines, Pie } from "./charts";
import { type Drawable, drawable } from "./series";
import "./ViewResult.css";

interface Props {
  name: string;
  render: Render;
  columns: string[];
  rows: Cell[][];
}

export function ViewResult({ name, render, columns, rows }: Props) {
  if (render === "table") return <RowsTable label={name} columns={columns} rows={rows} />;
  if (rows.length === 0) return <p className="muted">No rows.</p>;
  if (render === "number") return <Numbers columns={columns} row={rows[0] ?? []} />;
  const data = drawable(columns, rows);
  const problem = whyNot(render, data);
  if (data === null || problem) {
    return (
      <>
        <p className="muted small">Shown as a table: {problem}</p>
        <RowsTable label={name} columns={columns} rows={rows} />
      </>
    );
  }
  return (
    <>
      {render === "bar" ? <Bars data={data} /> : render === "line" ? <Lines data={data} /> : <Pie data={data} />}
      <details className="as-table">
        <summary>Show as table</summary>
        <RowsTable label={name} columns={columns} rows={rows} />
      </details>
    </>
  );
}

function whyNot(render: Render, data: Drawable | null): string | null {
  if (data === null) return `a ${render} chart needs a column of numbers after the first.`;
  const values = data.series[0]?.values ?? [];
  if (render !== "pie") return null;
  if (values.some((value) => value !== null && value < 0)) return "a pie chart cannot show negative numbers.";
  return values.some((value) => value) ? null : "all values are zero.";
}

function Numbers({ columns, row }: { columns: string[]; row: Cell[] }) {
  return (
    <dl className="numbers">
      {columns.map((name, place) => {
        const value = row[place] ?? null;
        return (
          <div key={place}>
            <dt>{name}</dt>
            <dd>
              {typeof value === "number" ? (
                value.toLocaleString()
              ) : plain(value).length > 24 ? (
                <Value value={value} name={name} />
              ) : (
                plain(value)
              )}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}
