/** The rows of a table. Table, filter, order and page are in the address. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { exportOfTable, rows, type Show } from "../../../../api/database";
import type { AgentShape, Rows, TableShape } from "../../../../api/rest.generated";
import { download } from "../../../../api/tickets";
import { Loading } from "../../../../components/frame/Page";
import { count } from "../../../../components/text/labels";
import { ErrorText } from "../../../../components/ui/ErrorText";
import { usePhone } from "../../../../components/ui/usePhone";
import { EmptyDatabase, OpenDatabase } from "../OpenDatabase";
import { type Address, useAddress } from "./address";
import { DataBar } from "./DataBar";
import { whereOf } from "./filter/conditions";
import { ImportDialog } from "./ImportDialog";
import { RowCards } from "./RowCards";
import { RowsGrid } from "./RowsGrid";
import { NewRowDialog, RowDialog } from "./row/RowDialog";
import { Row, shownColumns } from "./row/row";
import { SelectedRows } from "./SelectedRows";
import "./Data.css";

const PAGE = 50;

export default function Data({ agent }: { agent: AgentShape }) {
  return <OpenDatabase agent={agent}>{({ tables }) => <Tables agent={agent} tables={tables} />}</OpenDatabase>;
}

function Tables({ agent, tables }: { agent: AgentShape; tables: TableShape[] }) {
  const [params, setParams] = useSearchParams();
  const wanted = params.get("table");
  const table = wanted === null ? tables[0] : tables.find((each) => each.name === wanted);
  const picker = (
    <label className="row table-picker">
      <span className="muted">Table</span>
      <select
        aria-label="Table"
        value={table?.name ?? ""}
        onChange={(event) => setParams({ table: event.target.value })}
      >
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
  const [, setParams] = useSearchParams();
  const isPhone = usePhone();
  const address = useAddress(table);
  const { show, order, page } = address;
  const where = whereOf(address.conditions, table.columns);
  const found = useQuery(
    rows(agent.id, table.name, {
      show,
      where,
      sort: order.sort,
      desc: order.isDown,
      limit: PAGE,
      offset: (page - 1) * PAGE,
    }),
  );

  const [selected, setSelected] = useState<ReadonlySet<number>>(new Set());
  const [openId, setOpenId] = useState<number | null>(null);
  const [isAdding, setAdding] = useState(false);
  const [isImporting, setImporting] = useState(false);
  const showing = `${show} ${where} ${page}`;
  // biome-ignore lint/correctness/useExhaustiveDependencies: other rows are shown, so none of them is selected
  useEffect(() => setSelected(new Set()), [showing]);

  const places = new Map(found.data?.columns.map((name, place) => [name, place]));
  const list = found.data?.rows.map((cells) => new Row(cells, places)) ?? [];
  const openRow = list.find((row) => row.id === openId);
  const shared = {
    agent,
    table,
    columns: shownColumns(table.columns, show),
    rows: list,
    selected,
    onSelect: setSelected,
    onOpen: setOpenId,
  };
  return (
    <div className="data-tab">
      <DataBar
        table={table}
        address={address}
        picker={picker}
        onExport={() => void download(exportOfTable(agent.id, table.name, show))}
        onImport={() => setImporting(true)}
        onAdd={() => setAdding(true)}
      />
      <SelectedRows
        agent={agent}
        table={table}
        rows={list.filter((row) => selected.has(row.id))}
        onDone={() => setSelected(new Set())}
      />
      {found.isError ? (
        <ErrorText error={found.error} />
      ) : !found.data ? (
        <Loading what="rows" />
      ) : list.length === 0 ? (
        <NoRows agent={agent} show={show} isFiltered={where !== null} onAll={() => address.setConditions([])} />
      ) : isPhone ? (
        <RowCards {...shared} />
      ) : (
        <RowsGrid {...shared} order={order} onOrder={address.setOrder} />
      )}
      {found.data && found.data.total > 0 && <Paging found={found.data} address={address} />}
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

function Paging({ found, address: { page, setPage } }: { found: Rows; address: Address }) {
  const pages = Math.max(1, Math.ceil(found.total / PAGE));
  const isCut = found.truncated && found.row_count > 0 && found.row_count < Math.min(PAGE, found.total);
  return (
    <nav className="row paging" aria-label="Pages">
      <span className="muted small">
        {count(found.total, "row")}
        {isCut && "; some are too large to show together"}
      </span>
      {pages > 1 && (
        <span className="push row">
          <button type="button" className="small" disabled={page <= 1} onClick={() => setPage(page - 1)}>
            Previous
          </button>
          <span className="small">
            Page {page} of {pages}
          </span>
          <button type="button" className="small" disabled={page >= pages} onClick={() => setPage(page + 1)}>
            Next
          </button>
        </span>
      )}
    </nav>
  );
}

interface NoRowsProps {
  agent: AgentShape;
  show: Show;
  isFiltered: boolean;
  onAll: () => void;
}

function NoRows({ agent, show, isFiltered, onAll }: NoRowsProps) {
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
