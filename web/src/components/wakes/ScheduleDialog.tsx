/** Schedule a run, or edit a scheduled one; its times are shown before it is saved. */

import { useId, useState } from "react";
import { call } from "../../api/client";
import * as queries from "../../api/queries";
import type { AgentShape, WakeShape } from "../../api/rest.generated";
import { absolute } from "../text/times";
import { BROWSER_ZONE } from "../text/zone";
import { Dialog } from "../ui/Dialog";
import { FieldError } from "../ui/FieldError";
import { Form } from "../ui/Form";
import { type PingChange, PingField } from "./PingField";
import { RepeatField, type Repetition, repetitionOf, ruleOf } from "./RepeatField";
import { SchedulePreview, usePreview } from "./SchedulePreview";
import { errorAt, type FormField, refusalText } from "./scheduleErrors";
import { useCurrent, WakeHistory } from "./WakeHistory";
import "./ScheduleDialog.css";

interface Props {
  agent: AgentShape;
  sessionId: string | null; // null: the agent's next run
  wake: WakeShape | null; // as it was when the dialog was opened; null: a new one
  onClose: () => void;
}

const CHANGES = [["wakes"], ["sessions"], ["agenda"], ["notifications"]];
const DEFAULT_WHEN = "1h";

export function ScheduleDialog({ agent, sessionId, wake, onClose }: Props) {
  const id = useId();
  const { current, ended } = useCurrent(wake);
  const [what, setWhat] = useState(wake?.instructions ?? "");
  const [when, setWhen] = useState("");
  const [repetition, setRepetition] = useState<Repetition>(() => repetitionOf(wake));
  const [ping, setPing] = useState<PingChange>(undefined);
  const canRepeat = wake ? wake.call_type === "recurring" : sessionId !== null;
  const rule = canRepeat ? ruleOf(repetition) : {};
  const change = wake ? changes(wake, when, rule) : {};
  const booking = { when: when.trim() || ("cron" in rule ? null : DEFAULT_WHEN), timezone: BROWSER_ZONE };
  const preview = usePreview(
    wake
      ? { wake_id: wake.id, ...change }
      : { agent_id: agent.id, kind: sessionId === null ? "next_run" : "recall", ...booking, ...rule },
  );

  const save = queries.useAct<undefined>(
    async () => {
      if (wake) {
        const body = {
          ...change,
          ...(what !== wake.instructions && { instructions: what }),
          ...(ping !== undefined && { ping_url: ping?.trim() ?? null }),
        };
        return call("PATCH /wakes/{wake_id}", { path: { wake_id: wake.id }, body });
      }
      if (sessionId === null) {
        const body = { ...booking, instructions: what };
        return call("PUT /agents/{agent_id}/next-run", { path: { agent_id: agent.id }, body });
      }
      const call_type = repetition.kind === "once" ? ("once" as const) : ("recurring" as const);
      const body = { ...booking, ...rule, call_type, additional_context_message: what };
      return call("POST /sessions/{session_id}/recall", { path: { session_id: sessionId }, body });
    },
    CHANGES,
    onClose,
  );

  const previewError = preview.isCurrent ? preview.error : null;
  const at = (field: FormField | null) => errorAt(field, previewError, save.error);
  const described = (field: FormField) => ({
    "aria-invalid": at(field) ? true : undefined,
    "aria-describedby": at(field) ? `${id}-${field}` : undefined,
  });
  const problem = (field: FormField) => <FieldError id={`${id}-${field}`} error={at(field)} toText={refusalText} />;
  return (
    <Dialog
      title={wake ? "Edit scheduled run" : sessionId === null ? "Schedule the next run" : "Schedule a run"}
      onClose={onClose}
    >
      <Form act={save} onSubmit={() => save.mutate(undefined)}>
        <label className="field">
          What the agent should do
          <textarea
            rows={3}
            required
            value={what}
            placeholder="Read build.log with read_file. If there are errors, report the last 50 lines."
            onChange={(event) => setWhat(event.target.value)}
            {...described("what")}
          />
        </label>
        {problem("what")}
        <label className="field">
          When
          <input
            value={when}
            placeholder={
              current && !ended
                ? `unchanged: ${absolute(new Date(current.nominal_at), Date.now())}`
                : ended
                  ? ""
                  : "30m, in twenty minutes, this evening, tomorrow at 9, friday 14:30"
            }
            onChange={(event) => setWhen(event.target.value)}
            {...described("when")}
          />
        </label>
        {problem("when")}
        {canRepeat && (
          <RepeatField
            value={repetition}
            onChange={setRepetition}
            mayBeOnce={wake === null}
            described={described("repeat")}
            problem={problem("repeat")}
          />
        )}
        {!previewError && !ended && (
          <SchedulePreview
            preview={preview.data}
            agent={agent}
            isOnce={!canRepeat || repetition.kind === "once"}
            now={preview.now}
          />
        )}
        {current && (
          <PingField
            shown={current.ping_to}
            change={ping}
            onChange={setPing}
            described={described("ping")}
            problem={problem("ping")}
          />
        )}
        {current && <WakeHistory wake={current} agent={agent} />}
        {ended ? (
          <p className="bad-text" role="alert">
            {ended}
          </p>
        ) : (
          <FieldError id={`${id}-form`} error={at(null)} toText={refusalText} />
        )}
        <div className="row end">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={save.isPending || preview.isError || ended !== null}>
            {wake ? "Save" : "Schedule"}
          </button>
        </div>
      </Form>
    </Dialog>
  );
}

/** Return the changes of the time and the rule. A new time or cron rule is read in the zone of this browser. */
function changes(wake: WakeShape, when: string, rule: ReturnType<typeof ruleOf>) {
  const isNewCron = "cron" in rule && rule.cron !== wake.cron;
  const isNewInterval = "interval_seconds" in rule && rule.interval_seconds !== wake.interval_seconds;
  return {
    ...(when.trim() && { when: when.trim() }),
    ...((isNewCron || isNewInterval) && rule),
    ...((when.trim() || isNewCron) && { timezone: BROWSER_ZONE }),
  };
}
