/** Connect a model: take a local one that was found, or choose a provider; it is saved, tested and made the default. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../api/client";
import * as queries from "../../api/queries";
import type { ModelShape, ProviderShape } from "../../api/rest.generated";
import { Dialog } from "../ui/Dialog";
import { ErrorText } from "../ui/ErrorText";
import { LocalServers } from "./LocalServers";
import { ModelForm } from "./ModelForm";
import { ProviderList } from "./ProviderList";
import { TrialResult } from "./TrialResult";
import { MODEL_CHANGES, useTrial } from "./trial";
import "./models.css";

type Step = { at: "choose" } | { at: "form"; provider: ProviderShape } | { at: "result"; model: ModelShape };

export default function ConnectModel({ onClose }: { onClose: () => void }) {
  const [step, setStep] = useState<Step>({ at: "choose" });
  const fallback = useQuery(queries.models).data?.default;
  const [asked, setAsked] = useState<boolean | null>(null); // null: not decided by the owner
  const canBeDefault = fallback !== undefined && fallback.source !== "settings";
  const becomesDefault = canBeDefault && (asked ?? fallback.source === "built_in");
  const trial = useTrial();
  const onSaved = (model: ModelShape) => {
    setStep({ at: "result", model });
    trial.mutate({ name: model.name, becomesDefault });
  };
  const use = queries.useAct(
    (chosen: { provider: string; address: string; model: string }) => call("POST /models", { body: chosen }),
    MODEL_CHANGES,
    onSaved,
  );
  const title = step.at === "form" ? step.provider.label : step.at === "result" ? step.model.name : "Connect a model";
  return (
    <Dialog key={step.at} title={title} onClose={onClose}>
      {step.at === "choose" && (
        <>
          <LocalServers isBusy={use.isPending} onUse={use.mutate} />
          <ErrorText error={use.error} />
          <ProviderList onChoose={(provider) => setStep({ at: "form", provider })} />
        </>
      )}
      {step.at === "form" && (
        <ModelForm
          provider={step.provider}
          model={null}
          onSaved={onSaved}
          cancel={
            <button type="button" onClick={() => setStep({ at: "choose" })}>
              Back
            </button>
          }
        >
          <DefaultChoice canBeDefault={canBeDefault} isChosen={becomesDefault} onChange={setAsked} />
        </ModelForm>
      )}
      {step.at === "result" && (
        <TrialResult
          model={step.model}
          trial={trial}
          fallback={fallback}
          onAgain={() => trial.mutate({ name: step.model.name, becomesDefault })}
          onSaved={onSaved}
          onClose={onClose}
        />
      )}
    </Dialog>
  );
}

interface DefaultChoiceProps {
  canBeDefault: boolean;
  isChosen: boolean;
  onChange: (isChosen: boolean) => void;
}

function DefaultChoice({ canBeDefault, isChosen, onChange }: DefaultChoiceProps) {
  if (!canBeDefault) return null;
  return (
    <label className="check">
      <input type="checkbox" checked={isChosen} onChange={(event) => onChange(event.target.checked)} />
      Use it as the default if it answers, for agents without a model of their own
    </label>
  );
}
