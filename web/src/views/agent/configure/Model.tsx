import { useMutation, useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { call } from "../../../api/client";
import * as queries from "../../../api/queries";
import type { AgentChange } from "../../../api/rest.generated";
import { finishTrial, TrialText } from "../../../components/models/trial";
import { ErrorText } from "../../../components/ui/ErrorText";
import { SettingsSection } from "../../../components/ui/SettingsSection";
import { inOrder, type PartProps, useSetting } from "./autosave";
import { Field, Problem, Toggle } from "./fields";
import "./Model.css";

const LEVELS = ["off", "low", "medium", "high"] as const;

export function Model({ agent, save }: PartProps) {
  const about = useQuery(queries.about).data;
  const thinking = useSetting();
  const id = useId();
  const level = (value: string) => (value || null) as AgentChange["thinking_level"];
  return (
    <SettingsSection
      id="model"
      title="Model"
      text="The name of a model that the server's owner connected, demo, or PROVIDER:NAME with a key in the server's environment."
    >
      <Field
        label="Model"
        value={agent.model ?? ""}
        list={`${id}-models`}
        placeholder={about ? `Server default (${about.model})` : "Server default"}
        hint={
          (agent.model ?? about?.model) === "demo" &&
          "The demo model is not an LLM: it works offline and knows a few sentences. An owner connects a real one under Settings, Models."
        }
        onSave={(model) => save({ model: model.trim() || null })}
      />
      <datalist id={`${id}-models`}>
        {about && [...about.models, "demo"].map((name) => <option key={name} value={name} />)}
      </datalist>
      <Field
        label="Models its scheduled runs may use"
        value={agent.allowed_models.join(", ")}
        placeholder="only its own"
        hint="In addition to its own, separated by commas. Only an owner of this server can change them."
        onSave={(names) => save({ allowed_models: names.split(/[\s,]+/).filter(Boolean) })}
      />
      <ModelTest agentId={agent.id} />
      <div className="field">
        <label htmlFor={id}>Thinking</label>
        <select
          id={id}
          value={agent.thinking_level ?? ""}
          onChange={(event) => void thinking.set(() => save({ thinking_level: level(event.target.value) }))}
        >
          <option value="">Model default</option>
          {LEVELS.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
        <Problem text={thinking.problem} />
      </div>
      <Toggle
        label="Plan first"
        hint="It writes down its steps before it begins."
        isOn={agent.planning}
        onChange={(planning) => save({ planning })}
      />
    </SettingsSection>
  );
}

/** Sends the model one short request with a tool, so that a wrong name or key is found before a scheduled run needs it. */
function ModelTest({ agentId }: { agentId: string }) {
  const [waiting, setWaiting] = useState<string | null>(null);
  const test = useMutation({
    scope: inOrder(agentId),
    mutationFn: () =>
      finishTrial(() => call("POST /agents/{agent_id}/test-model", { path: { agent_id: agentId } }), setWaiting),
  });
  return (
    <div className="row wrap trial">
      <button type="button" disabled={test.isPending} onClick={() => test.mutate()}>
        {test.isPending ? "Asking the model…" : "Test the model"}
      </button>
      <div role="status">
        <TrialText trial={test.data} isPending={test.isPending} waiting={waiting} />
        <ErrorText error={test.error} />
      </div>
    </div>
  );
}
