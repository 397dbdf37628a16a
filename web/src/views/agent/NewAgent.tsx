/** The dialog of a new agent: what it is for decides the switches and the prompt, which can be changed here too. */

import { RadioGroup } from "radix-ui";
import { useId, useState } from "react";
import { useLocation } from "wouter";
import { call } from "../../api/client";
import * as queries from "../../api/queries";
import { MAX_LENGTH, TOOLSETS } from "../../api/server.generated";
import { MODES } from "../../components/text/labels";
import { Dialog } from "../../components/ui/Dialog";
import { ErrorText } from "../../components/ui/ErrorText";
import { Form } from "../../components/ui/Form";
import { Toggle } from "./configure/fields";
import { newAgentOf, type Switches, TEMPLATES, type TemplateName } from "./templates";
import "./configure/Scheduling.css";

export function NewAgent({ onClose }: { onClose: () => void }) {
  const id = useId();
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState<TemplateName>("helper");
  const [changes, setChanges] = useState<Partial<Switches>>({});
  const [written, setWritten] = useState<string | null>(null); // null: the template's prompt
  const [, navigate] = useLocation();
  const template = TEMPLATES[chosen];
  const has: Switches = { ...template, ...changes };
  const prompt = written ?? template.prompt;
  const make = queries.useAct(
    () => call("POST /agents", { body: newAgentOf(name, chosen === "empty" ? "" : template.text, prompt, has) }),
    [["agents"]],
    (agent) => navigate(`/ui/agents/${agent.id}`),
  );
  const choose = (next: string) => {
    setChosen(next as TemplateName);
    setChanges({});
  };
  return (
    <Dialog title="New agent" onClose={onClose}>
      <Form act={make} onSubmit={() => make.mutate(undefined)}>
        <label className="field">
          Name
          <input
            value={name}
            required
            maxLength={MAX_LENGTH.NewAgent.name}
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        <div className="field">
          <span id={`${id}-for`}>What is it for?</span>
          <RadioGroup.Root
            className="mode-cards template-cards"
            aria-labelledby={`${id}-for`}
            value={chosen}
            onValueChange={choose}
          >
            {(Object.keys(TEMPLATES) as TemplateName[]).map((each) => (
              <RadioGroup.Item key={each} value={each} className="card mode-card">
                <strong>{TEMPLATES[each].label}</strong>
                <span className="muted small">{TEMPLATES[each].text}</span>
              </RadioGroup.Item>
            ))}
          </RadioGroup.Root>
        </div>
        <SwitchFields has={has} onChange={(change) => setChanges((before) => ({ ...before, ...change }))} />
        <label className="field">
          Prompt
          <textarea
            rows={4}
            value={prompt}
            maxLength={MAX_LENGTH.NewAgent.system_prompt}
            placeholder="What it should know and do, in every run"
            onChange={(event) => setWritten(event.target.value)}
          />
        </label>
        <p className="muted small">It also has file and web tools. The rest is under Configure.</p>
        <ErrorText error={make.error} />
        <div className="row end">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={make.isPending}>
            Create
          </button>
        </div>
      </Form>
    </Dialog>
  );
}

const MODE_NAMES = ["ambient", "reactive", "project"] as const;

interface SwitchProps {
  has: Switches;
  onChange: (change: Partial<Switches>) => void;
}

function SwitchFields({ has, onChange }: SwitchProps) {
  return (
    <div className="field-grid">
      <Toggle
        label="Self-scheduling"
        hint={has.selfScheduling ? "It may schedule its own runs." : "It runs only when you write or schedule a run."}
        isOn={has.selfScheduling}
        onChange={async (selfScheduling) => onChange({ selfScheduling })}
      />
      {has.selfScheduling && (
        <label className="field">
          Mode
          <select value={has.mode} onChange={(event) => onChange({ mode: event.target.value as Switches["mode"] })}>
            {MODE_NAMES.map((mode) => (
              <option key={mode} value={mode}>
                {MODES[mode].label}
              </option>
            ))}
          </select>
          <span className="muted small">{MODES[has.mode].hint}</span>
        </label>
      )}
      <Toggle
        label="Notifications"
        hint={has.selfScheduling ? `${TOOLSETS.notify.hint}.` : "Needs self-scheduling."}
        isOn={has.selfScheduling && has.notify}
        isLocked={!has.selfScheduling}
        onChange={async (notify) => onChange({ notify })}
      />
      <Toggle
        label="Database"
        hint={`${TOOLSETS.database.hint}.`}
        isOn={has.database}
        onChange={async (database) => onChange({ database })}
      />
    </div>
  );
}
