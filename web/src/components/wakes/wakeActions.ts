import { call } from "../../api/client";
import * as queries from "../../api/queries";
import type { WakeShape } from "../../api/rest.generated";

const CHANGES = [["wakes"], ["sessions"], ["agenda"], ["runs"]];

/** Cancel, skip or run a scheduled run; `error` is that of the last one that failed. */
export function useWakeActions(wake: WakeShape) {
  const path = { wake_id: wake.id };
  const cancel = queries.useAct(() => call("DELETE /wakes/{wake_id}", { path }), CHANGES);
  const skip = queries.useAct(() => call("POST /wakes/{wake_id}/skip", { path }), CHANGES);
  const runNow = queries.useAct(() => call("POST /wakes/{wake_id}/run-now", { path }), CHANGES);
  return { cancel, skip, runNow, error: [cancel, skip, runNow].find((each) => each.isError)?.error };
}
