/** Test a model with a tool call, and say in words what came of it. */

import { useState } from "react";
import { call } from "../../api/client";
import * as queries from "../../api/queries";
import type { ModelTrialShape } from "../../api/rest.generated";
import { took } from "../text/times";

export const MODEL_CHANGES = [["models"], ["about"]];

/** Repeat a request for a test until it has a result; meanwhile it says what it waits for. */
export async function finishTrial(
  ask: () => Promise<ModelTrialShape>,
  onWait: (reason: string | null) => void,
): Promise<ModelTrialShape> {
  onWait(null);
  for (;;) {
    const trial = await ask();
    if (trial.outcome !== "waiting") return trial;
    onWait(trial.reason ?? null);
  }
}

interface Asked {
  name: string;
  becomesDefault: boolean; // if it answers
}

/** Test a model, and make it the default one if it answers and that was asked for. */
export function useTrial() {
  const [waiting, setWaiting] = useState<string | null>(null);
  const act = queries.useAct(async ({ name, becomesDefault }: Asked) => {
    const trial = await finishTrial(() => call("POST /models/test", { body: { model: name } }), setWaiting);
    const isDefault = becomesDefault && trial.outcome === "answered";
    if (isDefault) await call("PUT /models/default", { body: { model: name } });
    return { ...trial, isDefault };
  }, MODEL_CHANGES);
  return { ...act, waiting };
}

interface Props {
  trial: ModelTrialShape | undefined;
  isPending: boolean;
  waiting: string | null;
}

/** The result of a test in words. */
export function TrialText({ trial, isPending, waiting }: Props) {
  if (isPending) return <p className="muted">{waiting ?? "Asking it to call a tool…"}</p>;
  if (!trial) return null;
  if (trial.outcome !== "answered") return <p className="bad-text">{trial.reason}</p>;
  const hasTools = trial.tool_calls === "native";
  return (
    <p>
      <span className={hasTools ? "badge good" : "badge wait"}>{hasTools ? "works" : "answers"}</span>{" "}
      <code>{trial.model}</code> answered
      {trial.said && ` “${trial.said}”`} in {took(trial.seconds)}. {trial.tools_note}
    </p>
  );
}
