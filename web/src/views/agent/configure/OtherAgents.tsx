import { useQuery } from "@tanstack/react-query";
import * as queries from "../../../api/queries";
import type { AgentShape } from "../../../api/rest.generated";
import { SettingsSection } from "../../../components/ui/SettingsSection";
import { type PartProps, useSetting } from "./autosave";
import { Problem } from "./fields";
import "./OtherAgents.css";

/** The agents this one may give a task to, and those it may hand a whole session over to. */
export function OtherAgents({ agent, save }: PartProps) {
  const agents = useQuery(queries.agents).data ?? [];
  return (
    <SettingsSection
      id="others"
      title="Other agents"
      text="A subagent never gets more tools than the agent that called it."
    >
      <Choice
        title="Subagents"
        text={
          agent.toolsets.includes("subagents")
            ? "It may give these agents a task and read the result."
            : "It may give these agents a task once its Subagents tools are on."
        }
        agents={agents}
        chosen={agent.subagents}
        self={agent}
        onChange={(subagents) => save({ subagents })}
      />
      <Choice
        title="Profiles"
        text="It may hand a session over to these agents; you stay in the session."
        agents={agents.filter((each) => each.id !== agent.id)}
        chosen={agent.profiles}
        self={agent}
        onChange={(profiles) => save({ profiles })}
      />
    </SettingsSection>
  );
}

interface ChoiceProps {
  title: string;
  text: string;
  agents: AgentShape[];
  chosen: string[];
  self: AgentShape;
  onChange: (ids: string[]) => Promise<unknown>;
}

function Choice({ title, text, agents, chosen, self, onChange }: ChoiceProps) {
  const { problem, set } = useSetting();
  return (
    <fieldset className="choice">
      <legend>{title}</legend>
      <p className="muted small">{text}</p>
      {agents.length === 0 && <p className="muted small">You have no other agents yet.</p>}
      {agents.map((each) => (
        <label key={each.id} className="check">
          <input
            type="checkbox"
            checked={chosen.includes(each.id)}
            onChange={(event) =>
              void set(() =>
                onChange(event.target.checked ? [...chosen, each.id] : chosen.filter((id) => id !== each.id)),
              )
            }
          />
          {each.name}
          {each.id === self.id && <span className="muted small">itself</span>}
        </label>
      ))}
      <Problem text={problem} />
    </fieldset>
  );
}
