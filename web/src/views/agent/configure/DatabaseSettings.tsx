import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../../api/client";
import { database, useWrite } from "../../../api/database";
import type { AgentShape } from "../../../api/rest.generated";
import { Confirm, Dialog } from "../../../components/ui/Dialog";
import { ErrorText } from "../../../components/ui/ErrorText";
import { Form } from "../../../components/ui/Form";
import { SettingsSection } from "../../../components/ui/SettingsSection";

/** Rotates the key of an agent's database, or erases it. */
export function DatabaseSettings({ agent }: { agent: AgentShape }) {
  const state = useQuery(database(agent.id)).data?.state;
  const [asking, setAsking] = useState<"rotate" | "erase" | null>(null);
  const path = { agent_id: agent.id };
  const close = () => setAsking(null);
  const rotate = useWrite(() => call("POST /agents/{agent_id}/db/rotate-key", { path }), close);
  const erase = useWrite((confirm: string) => call("DELETE /agents/{agent_id}/db", { path, body: { confirm } }), close);
  if (state === undefined || (state === "none" && !erase.isSuccess)) return null;
  return (
    <SettingsSection id="database" title="Database" text="Its own file, encrypted with its own key.">
      <div className="row wrap">
        {state === "open" && (
          <button type="button" onClick={() => setAsking("rotate")}>
            Rotate key
          </button>
        )}
        {state !== "none" && (
          <button type="button" className="danger" onClick={() => setAsking("erase")}>
            Erase data
          </button>
        )}
        <span role="status">
          {state === "none" ? "Everything was erased." : rotate.isSuccess && "The key was rotated."}
        </span>
      </div>
      {asking === "rotate" && (
        <Confirm
          title="Rotate the key?"
          text="The database and its snapshots are re-encrypted. Earlier copies, such as backups, still need the old key, which is deleted."
          action="Rotate"
          error={rotate.error}
          onConfirm={() => rotate.mutate(undefined)}
          onClose={close}
        />
      )}
      {asking === "erase" && <Erase name={agent.name} error={erase.error} onErase={erase.mutate} onClose={close} />}
    </SettingsSection>
  );
}

interface EraseProps {
  name: string;
  error: unknown;
  onErase: (typed: string) => void;
  onClose: () => void;
}

/** Erasing cannot be undone, so it needs the typed name as well as a click. */
function Erase({ name, error, onErase, onClose }: EraseProps) {
  const [typed, setTyped] = useState("");
  return (
    <Dialog title={`Erase the data of ${name}?`} onClose={onClose}>
      <Form onSubmit={() => onErase(typed)}>
        <p>
          Every table, view and change is deleted for good. The key is destroyed, so that copies of the file cannot be
          read either, unless there is a copy of <code>db.key</code> too. The agent stays and can start again.
        </p>
        <label className="field">
          Type the agent's name, “{name}”, to erase it
          <input value={typed} autoComplete="off" onChange={(event) => setTyped(event.target.value)} />
        </label>
        <ErrorText error={error} />
        <div className="row end">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="danger" disabled={typed !== name}>
            Erase
          </button>
        </div>
      </Form>
    </Dialog>
  );
}
