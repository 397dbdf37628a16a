/** The controls of a table in one sheet, for phones. */

import type { TableShape } from "../../../../api/rest.generated";
import { Dialog } from "../../../../components/ui/Dialog";
import { Icon } from "../../../../components/ui/Icon";
import type { Address } from "./address";
import { FilterForm } from "./filter/FilterForm";
import { shownColumns, title } from "./row/row";
import { ShowSegments } from "./ShowSegments";

interface Props {
  table: TableShape;
  address: Address;
  onExport: () => void;
  onImport: () => void;
  onClose: () => void;
}

export function OptionsSheet({ table, address, onExport, onImport, onClose }: Props) {
  const { order } = address;
  return (
    <Dialog title={`Show ${table.name}`} isSheet onClose={onClose}>
      <ShowSegments address={address} />
      <div className="row">
        <label className="row grow">
          <span className="muted">Sort by</span>
          <select
            value={order.sort ?? ""}
            onChange={(event) => address.setOrder({ sort: event.target.value || null, isDown: order.isDown })}
          >
            <option value="">order of insertion</option>
            {shownColumns(table.columns, "all").map((each) => (
              <option key={each.name} value={each.name}>
                {title(each)}
              </option>
            ))}
          </select>
        </label>
        {order.sort !== null && (
          <button
            type="button"
            aria-pressed={order.isDown}
            onClick={() => address.setOrder({ ...order, isDown: !order.isDown })}
          >
            {order.isDown ? "↓ descending" : "↑ ascending"}
          </button>
        )}
      </div>
      <FilterForm
        columns={shownColumns(table.columns, "all")}
        conditions={address.conditions}
        onApply={(conditions) => {
          address.setConditions(conditions);
          onClose();
        }}
      />
      <div className="row">
        <button type="button" className="grow" onClick={onExport}>
          <Icon name="down2" size={15} />
          Export CSV
        </button>
        <button type="button" className="grow" onClick={onImport}>
          Import
        </button>
      </div>
    </Dialog>
  );
}
