/** The story of a scheduled run: the request, each move with its reason, start, end, and what it scheduled. */

import { useQuery } from "@tanstack/react-query";
import * as queries from "../../api/queries";
import type { DecisionShape, RunShape } from "../../api/rest.generated";
import { Story } from "../../components/wakes/Story";

interface Props {
  run: RunShape;
  wakeId: string;
  zone: string | undefined;
}

export function RunStory({ run, wakeId, zone }: Props) {
  const steps = useQuery(queries.why(wakeId)).data?.filter((step) => concerns(step, run));
  if (!steps?.length) return null;
  return (
    <section aria-labelledby="run-story">
      <h2 id="run-story">How it came about</h2>
      <Story steps={steps} zone={zone} />
    </section>
  );
}

/** The history of a recurring run has every time; the ones of other runs are left out. */
function concerns(step: DecisionShape, run: RunShape): boolean {
  if (step.run_id !== null) return step.run_id === run.id;
  return step.code === "booked" || step.code === "edited" || Date.parse(step.nominal_at) === Date.parse(run.nominal_at);
}
