/** Results of tools, drawn by their kind. What a model or a tool wrote is shown as text, never as HTML. */

import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import * as queries from "../../../../api/queries";
import { CodeBlock } from "../../../../components/text/CodeBlock";
import { reasonText } from "../../../../components/text/labels";
import { Time } from "../../../../components/text/times";
import { Icon } from "../../../../components/ui/Icon";
import { RowsTable } from "../../../agent/database/data/RowsTable";
import type { Tool } from "../items";
import { CallChanges } from "./CallChanges";
import { changesOf, countWords, kindOf, type ResultKind, rowsOf, textOf } from "./parse";
import "./results.css";

/** A result as it is shown. */
export interface Drawing {
  gist?: string; // in the card's first line
  brief?: ReactNode; // shown at once
  body?: ReactNode; // shown when the card is open
}

const DRAWERS: Record<ResultKind, (item: Tool) => Drawing | null> = {
  rows: drawRows,
  changes: drawChanges,
  file: drawFile,
  note: drawNote,
  booking: drawBooking,
  command: drawCommand,
  subagent: () => null, // has a card of its own
};

/** Draw the result of a successful call; null: it is shown as text. */
export function drawResult(item: Tool): Drawing | null {
  const kind = kindOf(item.tool);
  return kind === null || item.result === null || item.success === false ? null : DRAWERS[kind](item);
}

function drawRows(item: Tool): Drawing | null {
  const found = rowsOf(item);
  if (found === null) return null;
  const count = countWords(found.rows.length, "row");
  return {
    gist: found.isTruncated ? `first ${count}` : count,
    body: (
      <>
        {found.isTruncated && <p className="muted small">There are more rows; these are the first {count}.</p>}
        <RowsTable label={`Rows of ${item.tool}`} columns={found.columns} rows={found.rows} max={50} />
      </>
    ),
  };
}

const CHANGED: Record<string, string> = {
  db_insert: "added",
  db_delete: "deleted",
  db_restore: "restored",
};

function drawChanges(item: Tool): Drawing | null {
  const changed = changesOf(item);
  if (changed === null) return null;
  const gist = `${countWords(changed.count, "row")} ${CHANGED[item.tool] ?? "changed"}`;
  return changed.lastChange === null ? { gist } : { gist, body: <CallChanges changed={changed} /> };
}

function drawFile(item: Tool): Drawing | null {
  const path = textOf(item.args.path);
  const size = item.metadata.size;
  const text = item.tool === "write_file" ? textOf(item.args.content) : item.result;
  if (path === null || text === null || typeof size !== "number") return null;
  const diff = textOf(item.metadata.diff);
  return {
    gist: diff === null ? countWords(size, "byte") : diffWords(diff),
    body: (
      <figure className="file-result">
        <figcaption>
          <Icon name="file" size={14} />
          <strong>{path}</strong>
          <span className="muted small">
            {item.args.append === true ? "added at its end; " : ""}
            {countWords(size, "byte")}
          </span>
        </figcaption>
        {diff === null ? (
          <CodeBlock code={text} language={extensionOf(path)} />
        ) : (
          <CodeBlock code={diff} language="diff" />
        )}
      </figure>
    ),
  };
}

/** Return how many lines a diff adds and removes. */
function diffWords(diff: string): string {
  const count = (mark: string) => diff.split("\n").filter((line) => line.startsWith(mark)).length;
  return `+${count("+")} −${count("-")}`;
}

function extensionOf(path: string): string | undefined {
  return /\.(\w{1,12})$/.exec(path)?.[1]?.toLowerCase();
}

function drawNote(item: Tool): Drawing | null {
  const [title, body] = [textOf(item.args.title), textOf(item.args.body)];
  if (title === null || body === null) return null;
  return {
    gist: item.metadata.notification_id ? "sent" : "",
    brief: (
      <blockquote className="note-result">
        <strong>{title}</strong>
        <p className="plain">{body}</p>
      </blockquote>
    ),
  };
}

const BOOKED: Record<string, string> = {
  schedule_recall: "Scheduled a run in this session",
  schedule_next_run: "Scheduled its next run",
  message: "Scheduled a message in this session",
  session: "Scheduled a new session",
};

function drawBooking({ tool, args, metadata }: Tool): Drawing | null {
  const at = textOf(metadata.trigger_at) ?? textOf(metadata.scheduled_at) ?? textOf(metadata.fire_at);
  const what = BOOKED[tool === "scheduler" && args.op === "create" ? String(metadata.kind) : tool];
  if (at === null || what === undefined) return null;
  return {
    brief: (
      <p className="booking-result">
        <Icon name="clock" size={14} />
        <span>
          {what}: <BookedTime at={at} wakeId={wakeIdOf(metadata)} />
          {metadata.clamped === true && <Moved metadata={metadata} />}
        </span>
      </p>
    ),
  };
}

function wakeIdOf({ recall_id, next_run_id, schedule_id }: Record<string, unknown>): string {
  return String(recall_id ?? next_run_id ?? schedule_id).replace(/^sch-/, "");
}

/** The time that was booked; how far off it is only while that stands: it may be moved, cancelled or run since. */
function BookedTime({ at, wakeId }: { at: string; wakeId: string }) {
  const wake = useQuery(queries.wakes).data?.find((each) => each.id === wakeId);
  if (wake && Date.parse(wake.nominal_at) === Date.parse(at)) return <Time at={at} form="ahead" />;
  return (
    <>
      <Time at={at} />
      {wake && wake.call_type !== "recurring" && (
        <span className="muted">
          {" "}
          (changed since: now <Time at={wake.nominal_at} form="ahead" />)
        </span>
      )}
    </>
  );
}

/** Says that a booking was moved, and why. */
function Moved({ metadata }: { metadata: Record<string, unknown> }) {
  const reasons = Array.isArray(metadata.clamp_reasons) ? metadata.clamp_reasons.map(String) : [];
  const asked = textOf(metadata.requested_at);
  return (
    <span className="muted">
      {" "}
      (moved
      {asked && (
        <>
          {" from "}
          <Time at={asked} />
        </>
      )}
      {reasons.length > 0 && `: ${reasons.map(reasonText).join(", ")}`})
    </span>
  );
}

function drawCommand(item: Tool): Drawing | null {
  const command = textOf(item.args.command);
  if (command === null || item.result === null) return null;
  const [outcome = "", ...output] = item.result.split("\n");
  return {
    gist: outcome.replace(/\.$/, "").toLowerCase(),
    body: (
      <>
        <CodeBlock code={command} language="sh" />
        {output.join("").trim() !== "" && <CodeBlock code={output.join("\n")} language="output" />}
      </>
    ),
  };
}
