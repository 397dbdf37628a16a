/** The controls above the rows; on a phone most of them are in a sheet. */

import { type ReactNode, useState } from "react";
import type { TableShape } from "../../../../api/rest.generated";
import { Icon } from "../../../../components/ui/Icon";
import { usePhone } from "../../../../components/ui/usePhone";
import type { Address } from "./address";
import { FilterChips } from "./filter/FilterChips";
import { FilterForm } from "./filter/FilterForm";
import { OptionsSheet } from "./OptionsSheet";
import { shownColumns } from "./row/row";
import { ShowSegments } from "./ShowSegments";

interface Props {
  table: TableShape;
  address: Address;
  picker: ReactNode;
  onExport: () => void;
  onImport: () => void;
  onAdd: () => void;
}

export function DataBar(props: Props) {
  return usePhone() ? <PhoneBar {...props} /> : <WideBar {...props} />;
}

function WideBar({ table, address, picker, onExport, onImport, onAdd }: Props) {
  const [isFiltering, setFiltering] = useState(false);
  const columns = shownColumns(table.columns, "all");
  const { conditions, setConditions } = address;
  return (
    <>
      <div className="data-bar">
        {picker}
        <ShowSegments address={address} />
        <button
          type="button"
          className="quiet"
          aria-expanded={isFiltering}
          onClick={() => setFiltering((before) => !before)}
        >
          <Icon name="filter" size={16} />
          Filter
        </button>
        <span className="push row">
          <button type="button" onClick={onExport}>
            <Icon name="down2" size={15} />
            Export CSV
          </button>
          <button type="button" onClick={onImport}>
            Import
          </button>
          <button type="button" className="primary" onClick={onAdd}>
            <Icon name="plus" size={15} />
            Add row
          </button>
        </span>
      </div>
      {isFiltering ? (
        <FilterForm
          columns={columns}
          conditions={conditions}
          onApply={(applied) => {
            setConditions(applied);
            setFiltering(false);
          }}
        />
      ) : (
        <FilterChips columns={columns} conditions={conditions} onChange={setConditions} />
      )}
    </>
  );
}

function PhoneBar({ table, address, picker, onExport, onImport, onAdd }: Props) {
  const [isOpen, setOpen] = useState(false);
  const { show, order, conditions, setConditions } = address;
  const isChanged = show !== "active" || order.sort !== null || conditions.length > 0;
  return (
    <>
      <div className="data-bar">
        {picker}
        <button type="button" className="icon-only" aria-label="Options" onClick={() => setOpen(true)}>
          <Icon name="filter" />
          {isChanged && <span className="dot" />}
        </button>
        <button type="button" className="primary icon-only" aria-label="Add row" onClick={onAdd}>
          <Icon name="plus" />
        </button>
      </div>
      <FilterChips columns={shownColumns(table.columns, "all")} conditions={conditions} onChange={setConditions} />
      {isOpen && (
        <OptionsSheet
          table={table}
          address={address}
          onExport={onExport}
          onImport={() => {
            setOpen(false);
            onImport();
          }}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  );
}
