import type { AgentShape } from "../../api/rest.generated";
import "./AgentMark.css";

const HUES = [160, 30, 255, 90, 320, 200, 60, 290];

/** An agent's initial on a colour of its own, beside a text that names the agent; undefined: it was deleted. */
export function AgentMark({ agent }: { agent: AgentShape | undefined }) {
  if (!agent) return <span className="agent-mark is-gone" title="Its agent was deleted" aria-hidden="true" />;
  const hue = HUES[numberOf(agent.id) % HUES.length] ?? 0;
  return (
    <span className="agent-mark" title={agent.name} style={{ ["--hue" as string]: hue }} aria-hidden="true">
      {[...agent.name.trim()][0]?.toLocaleUpperCase()}
    </span>
  );
}

/** The same number for the same id, in every browser. */
function numberOf(id: string): number {
  return [...id].reduce((sum, character) => (sum * 31 + character.charCodeAt(0)) % 65_521, 7);
}
