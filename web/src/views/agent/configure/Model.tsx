import { useMutation, useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { call } from "../../../api/client";
import * as queries from "../../../api/queries";
import type { AgentChange } from "../../../api/rest.generated";
import { ErrorText } from "../../../components/ErrorText";
import { SettingsSection } from "../../../components/SettingsSection";
import { took } from "../../../components/times";
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
      text="A provider and a name, as in anthropic:NAME or openai-chat:NAME. Keys and addresses are in the server's settings."
    >
      <Field
        label="Model"
        value={agent.model ?? ""}
        placeholder={about ? `Server default (${about.model})` : "Server default"}
        hint={
          (agent.model ?? about?.model) === "demo" &&
          "The demo model is not an LLM: it works offline and knows a few sentences. Settings explains how to add a real one."
        }
        onSave={(model) => save({ model: model.trim() || null })}
      />
      <Field
        label="Models its schedules may use"
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

/** Sends the model one short request, so that a wrong name or key is found before a scheduled run needs it. */
function ModelTest({ agentId }: { agentId: string }) {
  const test = useMutation({
    scope: inOrder(agentId),
    mutationFn: () => call("POST /agents/{agent_id}/test-model", { path: { agent_id: agentId } }),
  });
  const { data } = test;
  return (
    <div className="row wrap trial">
      <button type="button" disabled={test.isPending} onClick={() => test.mutate()}>
        {test.isPending ? "Asking the model…" : "Test the model"}
      </button>
      <div role="status">
        {data?.outcome === "answered" && (
          <p>
            <span className="badge good">works</span> <code>{data.model}</code> answered “{data.said}” in{" "}
            {took(data.seconds)}.
          </p>
        )}
        {data && data.outcome !== "answered" && <p className="bad-text">{data.reason}</p>}
        <ErrorText error={test.error} />
      </div>
    </div>
  );
}
