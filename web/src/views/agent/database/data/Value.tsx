/** One value of a row, as text: shortened in a table, complete in a dialog. */

import { useState } from "react";
import type { Cell } from "../../../../api/database";
import { CodeBlock } from "../../../../components/text/CodeBlock";
import { Dialog } from "../../../../components/ui/Dialog";
import { prettyJson } from "./row/json";
import "./Value.css";

const SHORT = 80; // characters

function bytes(base64: string): number {
  return Math.floor((base64.length * 3) / 4) - (base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0);
}

export function plain(value: Cell): string {
  if (value === null) return "null";
  return typeof value === "object" ? `binary, ${bytes(value.base64).toLocaleString()} bytes` : String(value);
}

/** A light dash, which screen readers read as "null". */
export function Null() {
  return (
    <span className="null">
      <span aria-hidden="true">–</span>
      <span className="hidden">null</span>
    </span>
  );
}

interface Props {
  value: Cell;
  name: string;
  opens?: boolean; // false where the whole row can be opened
}

/** A value, shortened if it is long, with a button that shows all of it. */
export function Value({ value, name, opens = true }: Props) {
  const [isOpen, setOpen] = useState(false);
  if (value === null) return <Null />;
  if (typeof value === "object") return <span className="muted">{plain(value)}</span>;
  if (typeof value === "number") return <span className="number">{value}</span>;
  const isLong = value.length > SHORT || value.includes("\n") || prettyJson(value) !== null;
  if (!isLong) return <span>{value}</span>;
  const short = value.replaceAll(/\s+/g, " ").slice(0, SHORT);
  return (
    <span className="value-long">
      <span>{short.length < value.length ? `${short.trimEnd()}…` : short}</span>
      {opens && (
        <button type="button" className="quiet small" onClick={() => setOpen(true)}>
          Show all<span className="hidden"> of {name}</span>
        </button>
      )}
      {isOpen && (
        <Dialog title={name} onClose={() => setOpen(false)}>
          <WholeValue value={value} />
        </Dialog>
      )}
    </span>
  );
}

/** A whole value, with JSON indented. */
export function WholeValue({ value }: { value: Cell }) {
  if (typeof value !== "string") return <Value value={value} name="" />;
  const json = prettyJson(value);
  if (json !== null) return <CodeBlock code={json} language="json" />;
  return <p className="value-whole">{value === "" ? <span className="muted">empty</span> : value}</p>;
}
