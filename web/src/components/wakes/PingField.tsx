/** The address of a monitoring service that the runs of a wake are reported to. It is a secret: the page never gets it. */

import type { ReactNode } from "react";

/** A new address; null: remove it; undefined: as it is. */
export type PingChange = string | null | undefined;

interface Props {
  shown: string | null; // the public part of the current address
  change: PingChange;
  onChange: (change: PingChange) => void;
  described: object; // attributes that name its error
  problem: ReactNode;
}

export function PingField({ shown, change, onChange, described, problem }: Props) {
  return (
    <details className="wake-ping" open={shown !== null || undefined}>
      <summary>Report runs to a monitoring service</summary>
      <label className="field">
        Ping address
        <input
          type="url"
          autoComplete="off"
          value={change ?? ""}
          placeholder={shown && change !== null ? `unchanged: ${shown}` : "https://hc-ping.com/…"}
          onChange={(event) => onChange(event.target.value || undefined)}
          {...described}
        />
      </label>
      {problem}
      <p className="muted small">
        {change === null
          ? "Its runs will no longer be reported."
          : "The start and the end of each run are sent there, in the form of healthchecks.io. The service can alert you when a run is late or fails."}
      </p>
      {shown && change === undefined && (
        <button type="button" onClick={() => onChange(null)}>
          Remove address
        </button>
      )}
    </details>
  );
}
