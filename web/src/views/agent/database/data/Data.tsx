/** The rows of a table. Table, filter, order and page are in the address. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { call } from "../../../../api/client";
import { type Cell, exportOfTable, rows, type Show, useWrite } from "../../../../api/database";
import type { AgentShape, ColumnShape, TableShape } from "../../../../api/rest.generated";
import { download } from "../../../../api/tickets";
import { Loading } from "../../../../components/frame/Page";
import { count } from "../../../../components/text/labels";
import { Time } from "../../../../components/text/times";
import { ErrorText } from "../../../../components/ui/ErrorText";
import { Form } from "../../../../components/ui/Form";
import { Icon } from "../../../../components/ui/Icon";
import { EmptyDatabase, OpenDatabase } from "../OpenDatabase";
import { ImportDialog } from "./ImportDialog";
import { NewRowDialog, RowDialog } from "./RowDialog";
import { Value } from "./Value";
import { condition, isNumeric, OPERATORS, type Operator } from "./values";
import "./Data.css";

const PAGE = 50;
const SHOWS: [Show, string][] = [
  ["active", "Active"],
  ["deleted", "Deleted"],
  ["all", "All"],
];

export default function Data({ agent }: { agent: AgentShape }) {
  return <OpenDatabase agent={agent}>{({ tables }) => <Tables agent={agent} tables={tables} />}</OpenDatabase>;
}

function Tables({ agent, tables }: { agent: AgentShape; tables: TableShape[] }) {
  const [params, setParams] = useSearchParams();
  const wanted = params.get("table");
  const table = wanted === null ? tables[0] : tables.find((each) => each.name === wanted);
  const picker = (
    <label className="row">
      <span className="muted">Table</span>
      <select value={table?.name ?? ""} onChange={(event) => setParams({ table: event.target.value })}>
        {!table && <option value="">choose one</option>}
        {tables.map((each) => (
          <option key={each.name} value={each.name}>
            {each.name} ({each.rows.toLocaleString()})
          </option>
        ))}
      </select>
    </label>
  );
  if (tables.length === 0) return <EmptyDatabase agent={agent} />;
  if (table) return <TableRows key={table.name} agent={agent} table={table} picker={picker} />;
  return (
    <div className="stack">
      {picker}
      <p>There is no table “{wanted}”. It may have been dropped or renamed; choose another.</p>
    </div>
  );
}

function TableRows({ agent, table, picker }: { agent: AgentShape; table: TableShape; picker: ReactNode }) {
  const [params, setParams] = useSearchParams();
  const change = (changes: Record<string, string | null>) =>
    setParams(
      (before) => {
        const next = new URLSearchParams(before);
        next.set("table", table.name);
        for (const [name, value] of Object.entries({ page: null, ...changes }))
          value === null ? next.delete(name) : next.set(name, value);
        return next;
      },
      { replace: true },
    );
  const show = SHOWS.find(([each]) => each === params.get("show"))?.[0] ?? "active";
  const sort = table.columns.find((column) => column.name === params.get("sort"))?.name ?? null;
  const isDown = params.get("desc") === "1";
  const page = Math.max(1, Math.floor(Number(params.get("page"))) || 1);
  const column = table.columns.find((each) => each.name === params.get("column"));
  const operator = (params.get("is") ?? "contains") as Operator;
  const where = column && operator in OPERATORS ? condition(column, operator, params.get("value") ?? "") : null;
  const found = useQuery(
    rows(agent.id, table.name, { show, where, sort, desc: isDown, limit: PAGE, offset: (page - 1) * PAGE }),
  );

  const [selected, setSelected] = useState<ReadonlySet<number>>(new Set());
  const [openId, setOpenId] = useState<number | null>(null);
  const [isAdding, setAdding] = useState(false);
  const [isImporting, setImporting] = useState(false);
  const showing = `${show} ${where} ${page}`;
  // biome-ignore lint/correctness/useExhaustiveDependencies: other rows are shown, so none of them is selected
  useEffect(() => setSelected(new Set()), [showing]);

  const columns = ordered(table.columns);
  const places = new Map(found.data?.columns.map((name, place) => [name, place]));
  const list = found.data?.rows.map((cells) => new Row(cells, places)) ?? [];
  const picked = list.filter((row) => selected.has(row.id));
  const openRow = list.find((row) => row.id === openId);
  const pages = Math.max(1, Math.ceil((found.data?.total ?? 0) / PAGE));

  const sortBy = (name: string) =>
    change(sort !== name ? { sort: name, desc: null } : isDown ? { sort: null, desc: null } : { desc: "1" });
  return (
    <div className="data-tab">
      <div className="data-bar">
        {picker}
        <div className="segments" role="group" aria-label="Which rows">
          {SHOWS.map(([each, text]) => (
            <button
              key={each}
              type="button"
              aria-pressed={show === each}
              onClick={() => change({ show: each === "active" ? null : each })}
            >
              {text}
            </button>
          ))}
        </div>
        <span className="push row">
          <button type="button" onClick={() => void download(exportOfTable(agent.id, table.name, show))}>
            <Icon name="down2" size={15} />
            Export CSV
          </button>
          <button type="button" onClick={() => setImporting(true)}>
            Import
          </button>
          <button type="button" className="primary" onClick={() => setAdding(true)}>
            <Icon name="plus" size={15} />
            Add row
          </button>
        </span>
      </div>
      <Filter key={params.get("column")} columns={columns} params={params} onChange={change} />
      <SelectedRows agent={agent} table={table} rows={picked} onDone={() => setSelected(new Set())} />
      {found.isError ? (
        <ErrorText error={found.error} />
      ) : !found.data ? (
        <Loading what="rows" />
      ) : list.length === 0 ? (
        <NoRows
          agent={agent}
          show={show}
          isFiltered={where !== null}
          onAll={() => change({ column: null, is: null, value: null })}
        />
      ) : (
        <div className="table-scroll is-tall" tabIndex={0} role="group" aria-label={`Rows of ${table.name}`}>
          <table className="data-table">
            <thead>
              <tr>
                <th className="pick">
                  <input
                    type="checkbox"
                    aria-label="All rows on this page"
                    checked={picked.length === list.length}
                    onChange={(event) => setSelected(new Set(event.target.checked ? list.map((row) => row.id) : []))}
                  />
                </th>
                <th>
                  <span className="hidden">Open</span>
                </th>
                {columns.map(({ name, ...rest }) => (
                  <th
                    key={name}
                    scope="col"
                    className={isNumeric(rest) ? "is-number" : undefined}
                    aria-sort={sort !== name ? undefined : isDown ? "descending" : "ascending"}
                  >
                    <button type="button" className="quiet small sort" onClick={() => sortBy(name)}>
                      {name}
                      <span aria-hidden="true">{sort !== name ? "" : isDown ? " ↓" : " ↑"}</span>
                    </button>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {list.map((row) => (
                <tr key={row.id} className={row.isDeleted ? "is-deleted" : undefined}>
                  <td className="pick">
                    <input
                      type="checkbox"
                      aria-label={`Row ${row.id}`}
                      checked={selected.has(row.id)}
                      onChange={(event) => setSelected((before) => toggled(before, row.id, event.target.checked))}
                    />
                  </td>
                  <td className="pick">
                    <button type="button" className="small" onClick={() => setOpenId(row.id)}>
                      Open<span className="hidden"> row {row.id}</span>
                    </button>
                  </td>
                  {columns.map((each) => (
                    <td
                      key={each.name}
                      className={`${typeof row.get(each.name) === "number" ? "is-number" : ""}${each.system ? " is-system" : ""}`}
                    >
                      <DataValue row={row} column={each} zone={agent.zone} />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {found.data && found.data.total > 0 && (
        <nav className="row paging" aria-label="Pages">
          <span className="muted small">
            {count(found.data.total, "row")}
            {found.data.truncated &&
              list.length > 0 &&
              found.data.row_count < Math.min(PAGE, found.data.total) &&
              "; some are too large to show together"}
          </span>
          {pages > 1 && (
            <span className="push row">
              <button
                type="button"
                className="small"
                disabled={page <= 1}
                onClick={() => change({ page: String(page - 1) })}
              >
                Previous
              </button>
              <span className="small">
                Page {page} of {pages}
              </span>
              <button
                type="button"
                className="small"
                disabled={page >= pages}
                onClick={() => change({ page: String(page + 1) })}
              >
                Next
              </button>
            </span>
          )}
        </nav>
      )}
      {openRow && <RowDialog agent={agent} table={table} row={openRow} onClose={() => setOpenId(null)} />}
      {isAdding && <NewRowDialog agent={agent} table={table} onClose={() => setAdding(false)} />}
      {isImporting && (
        <ImportDialog
          agent={agent}
          table={table.name}
          onDone={(name) => {
            setImporting(false);
            setParams({ table: name });
          }}
          onClose={() => setImporting(false)}
        />
      )}
    </div>
  );
}

/** A value; the times of system columns are in the viewer's zone. */
function DataValue({ row, column, zone }: { row: Row; column: ColumnShape; zone: string }) {
  const value = row.get(column.name);
  return column.system && typeof value === "string" ? (
    <Time at={value} zone={zone} />
  ) : (
    <Value value={value} name={column.name} />
  );
}

/** One row, by the names of its columns. */
export class Row {
  constructor(
    private readonly cells: Cell[],
    private readonly places: ReadonlyMap<string, number>,
  ) {}

  get(name: string): Cell {
    return this.cells[this.places.get(name) ?? -1] ?? null;
  }

  get id(): number {
    return this.cells[0] as number; // the server puts it first
  }

  get isDeleted(): boolean {
    return this.get("_deleted_at") !== null;
  }
}

/** Put the system columns last. */
function ordered(columns: ColumnShape[]): ColumnShape[] {
  return [...columns.filter((column) => !column.system), ...columns.filter((column) => column.system)];
}

function toggled(before: ReadonlySet<number>, id: number, isIn: boolean): ReadonlySet<number> {
  const next = new Set(before);
  isIn ? next.add(id) : next.delete(id);
  return next;
}

interface FilterProps {
  columns: ColumnShape[];
  params: URLSearchParams;
  onChange: (changes: Record<string, string | null>) => void;
}

function Filter({ columns, params, onChange }: FilterProps) {
  const [column, setColumn] = useState(
    params.get("column") ?? (columns.find((each) => !each.primary_key) ?? columns[0])?.name ?? "",
  );
  const [operator, setOperator] = useState<Operator>((params.get("is") as Operator | null) ?? "contains");
  const [value, setValue] = useState(params.get("value") ?? "");
  const isOn = params.has("column");
  const needsValue = operator !== "null" && operator !== "something";
  return (
    <Form
      className="data-filter"
      role="search"
      aria-label="Filter"
      onSubmit={() => onChange({ column, is: operator, value: needsValue ? value : null })}
    >
      <select aria-label="Column" value={column} onChange={(event) => setColumn(event.target.value)}>
        {columns.map((each) => (
          <option key={each.name}>{each.name}</option>
        ))}
      </select>
      <select
        aria-label="Comparison"
        value={operator}
        onChange={(event) => setOperator(event.target.value as Operator)}
      >
        {Object.entries(OPERATORS).map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
      {needsValue && (
        <input type="search" aria-label="Value" value={value} onChange={(event) => setValue(event.target.value)} />
      )}
      <button type="submit">Filter</button>
      {isOn && (
        <button
          type="button"
          className="quiet"
          onClick={() => {
            setValue("");
            onChange({ column: null, is: null, value: null });
          }}
        >
          Clear
        </button>
      )}
    </Form>
  );
}

/** Actions on the selected rows, and their result. */
function SelectedRows({
  agent,
  table,
  rows: picked,
  onDone,
}: {
  agent: AgentShape;
  table: TableShape;
  rows: Row[];
  onDone: () => void;
}) {
  const path = { agent_id: agent.id, table: table.name };
  const remove = useWrite(
    (row_ids: number[]) => call("POST /agents/{agent_id}/db/tables/{table}/rows/delete", { path, body: { row_ids } }),
    onDone,
  );
  const restore = useWrite(
    (row_ids: number[]) => call("POST /agents/{agent_id}/db/tables/{table}/rows/restore", { path, body: { row_ids } }),
    () => {
      remove.reset();
      onDone();
    },
  );
  const live = picked.filter((row) => !row.isDeleted).map((row) => row.id);
  const deleted = picked.filter((row) => row.isDeleted).map((row) => row.id);
  const problem = remove.error ?? restore.error;
  return (
    <div className="chosen" role="status">
      {picked.length > 0 && (
        <p className="row">
          <strong>{picked.length} selected</strong>
          {live.length > 0 && (
            <button
              type="button"
              className="danger small"
              disabled={remove.isPending}
              onClick={() => remove.mutate(live)}
            >
              Delete {live.length}
            </button>
          )}
          {deleted.length > 0 && (
            <button
              type="button"
              className="small"
              disabled={restore.isPending}
              onClick={() => restore.mutate(deleted)}
            >
              Restore {deleted.length}
            </button>
          )}
        </p>
      )}
      {picked.length === 0 && remove.data && (
        <p className="row">
          {count(remove.data.deleted, "row")} deleted.
          <button type="button" className="small" onClick={() => restore.mutate(remove.data.row_ids)}>
            Undo
          </button>
        </p>
      )}
      {picked.length === 0 && !remove.data && restore.data && <p>{count(restore.data.restored, "row")} restored.</p>}
      <ErrorText error={problem} />
    </div>
  );
}

function NoRows({
  agent,
  show,
  isFiltered,
  onAll,
}: {
  agent: AgentShape;
  show: Show;
  isFiltered: boolean;
  onAll: () => void;
}) {
  if (isFiltered) {
    return (
      <p className="nothing">
        No rows match the filter.{" "}
        <button type="button" className="small" onClick={onAll}>
          Show all
        </button>
      </p>
    );
  }
  if (show === "deleted")
    return (
      <p className="nothing muted">
        No deleted rows. Rows that you or the agent delete can be restored here until their space is needed.
      </p>
    );
  return (
    <p className="nothing muted">
      This table is empty. Add a row, or ask {agent.name} to: <Link href={`/?agent=${agent.id}`}>start a session</Link>.
    </p>
  );
}
