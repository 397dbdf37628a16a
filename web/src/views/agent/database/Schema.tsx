/** Every table with its columns and indexes, system tables separately. */

import { useEffect } from "react";
import { Link, useSearchParams } from "wouter";
import type { AgentShape, ColumnShape, SchemaShape, SystemTableShape, TableShape } from "../../../api/rest.generated";
import { count } from "../../../components/text/labels";
import { typeText } from "./data/values";
import { OpenDatabase } from "./OpenDatabase";
import "./Schema.css";

export default function Schema({ agent }: { agent: AgentShape }) {
  return <OpenDatabase agent={agent}>{(schema) => <Tables agent={agent} schema={schema} />}</OpenDatabase>;
}

function Tables({ agent, schema: { tables, system_tables } }: { agent: AgentShape; schema: SchemaShape }) {
  const [params] = useSearchParams();
  const wanted = params.get("table");
  useEffect(() => {
    if (wanted) document.getElementById(`table-${wanted}`)?.scrollIntoView();
  }, [wanted]);
  return (
    <div className="stack schema">
      {tables.length === 0 && <p className="muted">No tables.</p>}
      {tables.map((table) => (
        <Table key={table.name} agent={agent} table={table} />
      ))}
      <details className="system-tables">
        <summary>
          <h2>System tables</h2> <span className="muted">managed by the server; the agent cannot change them</span>
        </summary>
        <div className="stack">
          {system_tables.map((table) => (
            <section key={table.name} className="card schema-table" aria-label={table.name}>
              <h3 className="mono">{table.name}</h3>
              <Columns table={table} />
            </section>
          ))}
        </div>
      </details>
    </div>
  );
}

function Table({ agent, table }: { agent: AgentShape; table: TableShape }) {
  return (
    <section className="card schema-table" id={`table-${table.name}`} aria-label={table.name}>
      <header className="row">
        <h2 className="mono">{table.name}</h2>
        <span className="muted small">
          {count(table.rows, "row")}
          {table.deleted_rows > 0 && `, ${table.deleted_rows.toLocaleString()} deleted`}
        </span>
        <Link
          className="button small push"
          href={`/ui/agents/${agent.id}/data?table=${encodeURIComponent(table.name)}`}
          aria-label={`Browse ${table.name}`}
        >
          Browse
        </Link>
      </header>
      {table.purpose && <p className="muted">{table.purpose}</p>}
      <Columns table={table} />
    </section>
  );
}

function Columns({ table }: { table: SystemTableShape }) {
  return (
    <>
      <div className="table-scroll" tabIndex={0} role="group" aria-label={`Columns of ${table.name}`}>
        <table className="data-table">
          <thead>
            <tr>
              <th scope="col">Column</th>
              <th scope="col">Type</th>
              <th scope="col">Rules</th>
            </tr>
          </thead>
          <tbody>
            {table.columns.map((column) => (
              <tr key={column.name} className={column.system ? "is-system" : undefined}>
                <td className="mono">{column.name}</td>
                <td className="mono">{typeText(column)}</td>
                <td>{column.system ? "set by the server" : rules(column)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {table.indexes.length > 0 && (
        <p className="small">
          <span className="muted">Indexes: </span>
          {table.indexes.map((index, number) => (
            <span key={index.name}>
              {number > 0 && ", "}
              <code>{index.name}</code>{" "}
              <span className="muted">
                ({index.unique && "unique; "}
                {index.columns.map((name) => name ?? "an expression").join(", ")})
              </span>
            </span>
          ))}
        </p>
      )}
    </>
  );
}

function rules(column: ColumnShape): string {
  return [
    column.primary_key && "primary key",
    column.required && "required",
    column.default !== null && `default ${column.default}`,
  ]
    .filter(Boolean)
    .join(" · ");
}
