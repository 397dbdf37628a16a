import { useId, useState } from "react";
import { call } from "../../api/client";
import { useAct, useQuickAct } from "../../api/queries";
import type { NewPause, PauseShape } from "../../api/rest.generated";
import { MAX_LENGTH } from "../../api/server.generated";
import { Time } from "../text/times";
import { Dialog } from "../ui/Dialog";
import { ErrorText } from "../ui/ErrorText";
import { FieldError, isAbout } from "../ui/FieldError";
import { Form } from "../ui/Form";
import { Menu, MenuItem, MenuLabel } from "../ui/Menu";
import "./PauseMenu.css";

const CHANGES = [["pause"], ["agenda"], ["wakes"], ["sessions"]];

function pause(agentId: string | null, body: NewPause) {
  return agentId === null
    ? call("PUT /pause", { body })
    : call("PUT /agents/{agent_id}/pause", { path: { agent_id: agentId }, body });
}

function resume(agentId: string | null) {
  return agentId === null
    ? call("DELETE /pause")
    : call("DELETE /agents/{agent_id}/pause", { path: { agent_id: agentId } });
}

export const useResume = () => useQuickAct(resume, CHANGES);

/** Pauses the scheduled runs of one agent or (null) of all. */
export function PauseMenu({ agentId, text = "Pause" }: { agentId: string | null; text?: string }) {
  const [isCustom, setCustom] = useState(false);
  const act = useAct(
    (body: NewPause) => pause(agentId, body),
    CHANGES,
    () => setCustom(false),
  );
  const quick = useQuickAct((body: NewPause) => pause(agentId, body), CHANGES);
  return (
    <>
      <Menu label={agentId === null ? "Pause everything" : "Pause this agent"} icon="pause" text={text}>
        <MenuLabel>{agentId === null ? "Pause all scheduled runs" : "Pause scheduled runs"}</MenuLabel>
        <MenuItem onSelect={() => quick.mutate({ preset: "1h" })}>1 hour</MenuItem>
        <MenuItem onSelect={() => quick.mutate({ preset: "4h" })}>4 hours</MenuItem>
        <MenuItem onSelect={() => quick.mutate({ preset: "tomorrow" })}>Until tomorrow</MenuItem>
        <MenuItem onSelect={() => setCustom(true)}>Custom…</MenuItem>
        <MenuItem onSelect={() => quick.mutate({ preset: "indefinitely" })}>Indefinitely</MenuItem>
      </Menu>
      {isCustom && (
        <CustomPause agentId={agentId} error={act.error} onPause={act.mutate} onClose={() => setCustom(false)} />
      )}
    </>
  );
}

/** The end of a pause: "until tomorrow 09:00", or "until you resume". */
export function PausedUntil({ pause: { until }, zone }: { pause: PauseShape; zone?: string | undefined }) {
  if (until === null) return "until you resume";
  return (
    <>
      until <Time at={until} zone={zone} />
    </>
  );
}

/** The reason of a pause, which can be added after a preset was chosen with one click. */
export function PauseReason({ pause: { agent_id, until, reason } }: { pause: PauseShape }) {
  const [written, setWritten] = useState<string | null>(null);
  const act = useAct(
    (reason: string) => pause(agent_id, { until, reason }),
    CHANGES,
    () => setWritten(null),
  );
  if (written === null) {
    return (
      <span className="pause-reason">
        {reason}
        <button type="button" className="quiet small" onClick={() => setWritten(reason)}>
          {reason ? "Edit reason" : "Add a reason"}
        </button>
      </span>
    );
  }
  return (
    <Form
      className="pause-reason"
      act={act}
      onSubmit={() => act.mutate(written.trim())}
      onKeyDown={(event) => event.key === "Escape" && setWritten(null)}
    >
      <input
        aria-label="Reason"
        // biome-ignore lint/a11y/noAutofocus: the click that shows this field asks to write in it
        autoFocus
        value={written}
        maxLength={MAX_LENGTH.NewPause.reason}
        onChange={(event) => setWritten(event.target.value)}
      />
      <button type="submit" className="small" disabled={act.isPending}>
        Save
      </button>
      <ErrorText error={act.error} />
    </Form>
  );
}

interface CustomProps {
  agentId: string | null;
  error: unknown;
  onPause: (body: NewPause) => void;
  onClose: () => void;
}

function CustomPause({ agentId, error, onPause, onClose }: CustomProps) {
  const [until, setUntil] = useState(() => localInput(new Date(Date.now() + 2 * 3600_000)));
  const [reason, setReason] = useState("");
  const [stops, setStops] = useState(false);
  const id = useId();
  const isOver = isAbout(error, ["until"]);
  return (
    <Dialog title={agentId === null ? "Pause everything" : "Pause this agent"} onClose={onClose}>
      <Form onSubmit={() => onPause({ until: new Date(until).toISOString(), reason, stop: stops })}>
        <label className="field">
          Until
          <input
            type="datetime-local"
            value={until}
            required
            aria-invalid={isOver || undefined}
            aria-describedby={isOver ? id : undefined}
            onChange={(event) => setUntil(event.target.value)}
          />
        </label>
        <FieldError id={id} error={isOver} toText={() => "This time has passed. Choose a later one."} />
        <label className="field">
          Reason
          <input
            value={reason}
            maxLength={MAX_LENGTH.NewPause.reason}
            placeholder="Shown while it is paused"
            onChange={(event) => setReason(event.target.value)}
          />
        </label>
        <label className="check">
          <input type="checkbox" checked={stops} onChange={(event) => setStops(event.target.checked)} />
          Also stop runs in progress
        </label>
        <ErrorText error={isOver ? null : error} />
        <div className="row end">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary">
            Pause
          </button>
        </div>
      </Form>
    </Dialog>
  );
}

function localInput(date: Date): string {
  const shifted = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 16);
}
