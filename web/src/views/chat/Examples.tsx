/** Messages to start with: those that the demo model understands, or others for a real model. */

import { useQuery } from "@tanstack/react-query";
import * as queries from "../../api/queries";
import type { AgentShape } from "../../api/rest.generated";
import { TOOLSETS } from "../../api/server.generated";
import { DEMO } from "../../components/models/names";

type ToolsetName = keyof typeof TOOLSETS;
type Example = { text: string; needs?: ToolsetName[] };

const FOR_DEMO: Example[] = [
  { text: "What can you do?" },
  { text: "Write buy milk to notes.txt", needs: ["files"] },
  { text: "In 10 seconds notify me: tea is ready", needs: ["recall", "notify"] },
];

const FOR_MODELS: Example[] = [
  { text: "What can you do?" },
  { text: "Keep a list of films I want to see.", needs: ["database"] },
  { text: "In 10 minutes, remind me to stretch.", needs: ["recall"] },
];

/** Return whether an agent can use the tools of a toolset. */
function has({ toolsets, self_scheduling }: AgentShape, name: ToolsetName): boolean {
  return toolsets.includes(name) && (self_scheduling || !TOOLSETS[name].needs_self_scheduling);
}

export function Examples({ agent, onChoose }: { agent: AgentShape; onChoose: (text: string) => void }) {
  const about = useQuery(queries.about).data;
  if (!about) return null; // which examples fit depends on the model
  const all = (agent.model ?? about.model) === DEMO ? FOR_DEMO : FOR_MODELS;
  return (
    <ul className="suggestions" aria-label="Examples">
      {all
        .filter(({ needs = [] }) => needs.every((name) => has(agent, name)))
        .map(({ text }) => (
          <li key={text}>
            <button type="button" className="quiet" onClick={() => onChoose(text)}>
              {text}
            </button>
          </li>
        ))}
    </ul>
  );
}
