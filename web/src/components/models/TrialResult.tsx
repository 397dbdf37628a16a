/** A model that was just saved: the result of its test, and what to do next. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import * as queries from "../../api/queries";
import type { DefaultShape, ModelShape } from "../../api/rest.generated";
import { ErrorText } from "../ui/ErrorText";
import { ModelForm } from "./ModelForm";
import { TrialText, type useTrial } from "./trial";

interface Props {
  model: ModelShape;
  trial: ReturnType<typeof useTrial>;
  fallback: DefaultShape | undefined; // the default model
  onAgain: () => void;
  onSaved: (model: ModelShape) => void;
  onClose: () => void;
}

export function TrialResult({ model, trial, fallback, onAgain, onSaved, onClose }: Props) {
  const [isEditing, setEditing] = useState(false);
  const provider = useQuery(queries.providers).data?.find((each) => each.id === model.provider);
  const hasFailed = trial.isError || (trial.data !== undefined && trial.data.outcome !== "answered");
  if (isEditing && provider)
    return (
      <ModelForm
        provider={provider}
        model={model}
        onSaved={(saved) => {
          setEditing(false);
          onSaved(saved);
        }}
        cancel={
          <button type="button" onClick={() => setEditing(false)}>
            Back
          </button>
        }
      />
    );
  return (
    <>
      <div role="status" className="stack trial-text">
        <TrialText trial={trial.data} isPending={trial.isPending} waiting={trial.waiting} />
        {!trial.isPending && trial.data && (
          <p>{trial.data.isDefault ? IN_USE : hasFailed ? UNUSED : notDefault(model, fallback)}</p>
        )}
        <ErrorText error={trial.error} />
      </div>
      <div className="row end">
        {hasFailed && !trial.isPending && (
          <>
            <button type="button" onClick={() => setEditing(true)}>
              Edit
            </button>
            <button type="button" onClick={onAgain}>
              Test again
            </button>
          </>
        )}
        <button type="button" className="primary" onClick={onClose}>
          {trial.isPending || hasFailed ? "Close" : "Done"}
        </button>
      </div>
    </>
  );
}

const IN_USE = "It is the default now: agents without a model of their own use it from their next message on.";
const UNUSED = "It is saved, but it is not the default, so no agent uses it yet.";

function notDefault({ name }: ModelShape, fallback: DefaultShape | undefined): string {
  if (fallback?.model === name) return IN_USE;
  const choose = "Choose it for an agent under Configure, Model.";
  return fallback?.source === "settings"
    ? `It is saved. The default stays ${fallback.model}, because the server's settings name it. ${choose}`
    : `It is saved. The default stays ${fallback?.model ?? "as it was"}. ${choose}`;
}
