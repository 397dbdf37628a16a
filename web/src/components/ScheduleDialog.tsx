/** Schedule a run, or edit a scheduled one; its next five times are shown before it is saved. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../api/client";
import * as queries from "../api/queries";
import type { AgentShape, WakeShape } from "../api/rest.generated";
import { Dialog } from "./Dialog";
import { ErrorText } from "./ErrorText";
import { Form } from "./Form";
import { reasonText } from "./labels";
import { absolute, inZone, relative, useNow } from "./times";
import { useDebounced } from "./useDebounced";
import { BROWSER_ZONE } from "./zone";
import "./ScheduleDialog.css";

interface Props {
  agent: AgentShape;
  sessionId: string | null; // null: the agent's next run
  wake: WakeShape | null; // null: a new one
  onClose: () => void;
}

type Repeat = "once" | "interval" | "cron";

const UNITS = { seconds: 1, minutes: 60, hours: 3600, days: 86_400 } as const;
type Unit = keyof typeof UNITS;
const UNIT_NAMES = Object.keys(UNITS) as Unit[];

/** Return the largest unit that an interval is a whole number of. */
function unitOf(seconds: number): Unit {
  return UNIT_NAMES.findLast((name) => seconds % UNITS[name] === 0) ?? "seconds";
}

export function ScheduleDialog({ agent, sessionId, wake, onClose }: Props) {
  const seconds = wake?.interval_seconds ?? null;
  const [what, setWhat] = useState(wake?.instructions ?? "");
  const [when, setWhen] = useState("");
  const [repeat, setRepeat] = useState<Repeat>(
    wake?.cron ? "cron" : wake?.call_type === "recurring" ? "interval" : "once",
  );
  const [cron, setCron] = useState(wake?.cron ?? "0 9 * * *");
  const [unit, setUnit] = useState<Unit>(seconds === null ? "minutes" : unitOf(seconds));
  const [count, setCount] = useState(seconds === null ? 30 : seconds / UNITS[unit]);
  const isNextRun = sessionId === null;
  // Only a recall has a time zone of its own; the server reads the new time of any other run in the agent's.
  const zone = wake && wake.kind !== "recall" ? {} : { timezone: BROWSER_ZONE };
  const interval = Math.round(count * UNITS[unit]);

  const rule = {
    agent_id: agent.id,
    when: when.trim() || (wake ? wake.nominal_at : repeat === "cron" ? null : "1h"),
    interval_seconds: repeat === "interval" ? interval : null,
    cron: repeat === "cron" ? cron : null,
    ...zone,
  };
  const preview = usePreview(rule);

  const save = queries.useAct(
    async () => {
      if (wake) return call("PATCH /wakes/{wake_id}", { path: { wake_id: wake.id }, body: changes() });
      if (isNextRun)
        return call("PUT /agents/{agent_id}/next-run", {
          path: { agent_id: agent.id },
          body: { instructions: what, when: rule.when, timezone: BROWSER_ZONE },
        });
      const path = { session_id: sessionId };
      const timing =
        repeat === "once"
          ? { call_type: "once" as const }
          : { call_type: "recurring" as const, cron: rule.cron, interval_seconds: rule.interval_seconds };
      return call("POST /sessions/{session_id}/recall", {
        path,
        body: { ...timing, when: rule.when, timezone: BROWSER_ZONE, additional_context_message: what },
      });
    },
    [["wakes"], ["sessions"], ["agenda"]],
    onClose,
  );

  function changes() {
    return {
      ...(what !== wake?.instructions && { instructions: what }),
      ...(when.trim() && { when: when.trim(), ...zone }),
      ...(repeat === "cron" && cron !== wake?.cron && { cron, ...zone }),
      ...(repeat === "interval" && interval !== seconds && { interval_seconds: interval }),
    };
  }

  return (
    <Dialog
      title={wake ? "Edit scheduled run" : isNextRun ? "Schedule the next run" : "Schedule a run"}
      onClose={onClose}
    >
      <Form onSubmit={() => save.mutate(undefined)}>
        <label className="field">
          What the agent should do
          <textarea
            rows={3}
            required
            value={what}
            placeholder="Read build.log with read_file. If there are errors, report the last 50 lines."
            onChange={(event) => setWhat(event.target.value)}
          />
        </label>
        <label className="field">
          When
          <input
            value={when}
            placeholder={
              wake
                ? `unchanged: ${absolute(new Date(wake.nominal_at), Date.now())}`
                : "30m, in twenty minutes, this evening, tomorrow at 9, friday 14:30"
            }
            onChange={(event) => setWhen(event.target.value)}
          />
        </label>
        {!isNextRun && (
          <div className="field">
            <span id="repeat-label">Repeat</span>
            <div className="row">
              <select
                aria-labelledby="repeat-label"
                value={repeat}
                onChange={(event) => setRepeat(event.target.value as Repeat)}
                disabled={wake !== null && wake.call_type !== "recurring"}
              >
                {wake?.call_type !== "recurring" && <option value="once">Once</option>}
                <option value="interval">Every…</option>
                <option value="cron">Cron rule</option>
              </select>
              {repeat === "interval" && (
                <>
                  <input
                    className="short"
                    type="number"
                    min={1}
                    value={count}
                    aria-label="How many"
                    onChange={(event) => setCount(Number(event.target.value) || 1)}
                  />
                  <select aria-label="Unit" value={unit} onChange={(event) => setUnit(event.target.value as Unit)}>
                    {UNIT_NAMES.map((name) => (
                      <option key={name}>{name}</option>
                    ))}
                  </select>
                </>
              )}
              {repeat === "cron" && (
                <input
                  className="mono"
                  value={cron}
                  aria-label="Cron rule"
                  onChange={(event) => setCron(event.target.value)}
                />
              )}
            </div>
          </div>
        )}
        <NextTimes
          preview={preview}
          zone={agent.zone}
          isOnce={repeat === "once" || isNextRun}
          horizon={isNextRun && !wake ? agent.schedule.max_horizon_seconds : null}
        />
        <ErrorText error={save.error} />
        <div className="row end">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={save.isPending || preview.isError}>
            {wake ? "Save" : "Schedule"}
          </button>
        </div>
      </Form>
    </Dialog>
  );
}

type Rule = Parameters<typeof previewQuery>[0];

function previewQuery(rule: {
  agent_id: string;
  when: string | null;
  interval_seconds: number | null;
  cron: string | null;
  timezone?: string;
}) {
  return {
    queryKey: ["wakes", "preview", rule],
    queryFn: () => call("GET /wakes/preview", { query: rule }),
    retry: false,
  };
}

/** Preview the times 250 ms after the last keystroke. */
function usePreview(rule: Rule) {
  const settled = useDebounced(JSON.stringify(rule), 250);
  return useQuery({ ...previewQuery(JSON.parse(settled) as Rule), placeholderData: (before) => before });
}

interface NextTimesProps {
  preview: ReturnType<typeof usePreview>;
  zone: string;
  isOnce: boolean;
  horizon: number | null; // seconds: a run beyond it is moved to it
}

function NextTimes({ preview, zone, isOnce, horizon }: NextTimesProps) {
  const now = useNow(15);
  const latest = horizon === null ? Infinity : now + horizon * 1000;
  const times = preview.data?.times.slice(0, isOnce ? 1 : 5);
  return (
    <div className="next-times" aria-live="polite">
      <h3>{isOnce ? "It will run" : "The next times"}</h3>
      {preview.isError ? (
        <ErrorText error={preview.error} />
      ) : times?.length === 0 ? (
        <p className="muted">Not before you resume: the agent is paused.</p>
      ) : (
        <ol>
          {times?.map((time) => {
            const isBeyond = Date.parse(time.at) > latest;
            const at = isBeyond ? new Date(latest) : new Date(time.at);
            return (
              <li key={time.nominal_at}>
                <time dateTime={at.toISOString()} title={inZone(at, zone)}>
                  {absolute(at, now)}
                </time>{" "}
                <span className="muted">{relative(at, now)}</span>
                {isBeyond && <span className="badge wait">moved: {reasonText("max_horizon")}</span>}
                {time.reason && <span className="badge wait">delayed: {reasonText(time.reason)}</span>}
              </li>
            );
          })}
        </ol>
      )}
    </div>
  );
}
