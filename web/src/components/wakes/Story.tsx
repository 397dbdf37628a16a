/** The history of a scheduled run as sentences: the request, each move with its reason, start, end. */

import type { DecisionShape } from "../../api/rest.generated";
import { ExactTime, StoryText } from "../text/StoryText";
import "./Story.css";

export function Story({ steps, zone }: { steps: DecisionShape[]; zone: string | undefined }) {
  return (
    <ol className="story">
      {steps.map((step, index) => (
        <li key={index}>
          <span className="muted small">
            <ExactTime at={step.at} zone={zone} />
          </span>
          <span>
            <StoryText text={step.text} zone={zone} />
          </span>
        </li>
      ))}
    </ol>
  );
}
