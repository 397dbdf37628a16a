import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError, call } from "../../api/client";
import * as queries from "../../api/queries";
import type { ModelShape } from "../../api/rest.generated";
import { ModelForm } from "../../components/models/ModelForm";
import { refusalText } from "../../components/models/modelErrors";
import { MODEL_CHANGES, TrialText, useTrial } from "../../components/models/trial";
import { Time } from "../../components/text/times";
import { Dialog } from "../../components/ui/Dialog";
import { ErrorText } from "../../components/ui/ErrorText";

export function ModelRow({ model, canBeDefault }: { model: ModelShape; canBeDefault: boolean }) {
  const [open, setOpen] = useState<"edit" | "remove" | null>(null);
  const trial = useTrial();
  const choose = queries.useAct(() => call("PUT /models/default", { body: { model: model.name } }), MODEL_CHANGES);
  const test = () => trial.mutate({ name: model.name, becomesDefault: false });
  const close = () => setOpen(null);
  return (
    <li>
      <span className="grow">
        <ModelFacts model={model} />
        <span role="status" className="small">
          <TrialText trial={trial.data} isPending={trial.isPending} waiting={trial.waiting} />
        </span>
        <ErrorText error={choose.error ?? trial.error} />
      </span>
      <span className="row">
        <button type="button" className="small" disabled={trial.isPending} onClick={test}>
          {trial.isPending ? "Testing…" : "Test"}
        </button>
        {canBeDefault && !model.is_default && (
          <button type="button" className="small" disabled={choose.isPending} onClick={() => choose.mutate(undefined)}>
            Make default
          </button>
        )}
        {model.source === "added" && (
          <>
            <button type="button" className="small" onClick={() => setOpen("edit")}>
              Edit
            </button>
            <button type="button" className="small" onClick={() => setOpen("remove")}>
              Remove
            </button>
          </>
        )}
      </span>
      {open === "edit" && <EditDialog model={model} onClose={close} onSaved={test} />}
      {open === "remove" && <RemoveDialog model={model} onClose={close} />}
    </li>
  );
}

const TOOL_CALLS = { native: "calls tools", none: "cannot call tools" };

function ModelFacts({ model }: { model: ModelShape }) {
  const { abilities } = model;
  const isTested = model.tested_at !== null || model.tool_calls !== null;
  const size = abilities.context_window.toLocaleString();
  return (
    <>
      <strong>
        {model.name} {model.is_default && <span className="badge good">default</span>}{" "}
        {model.source === "settings" && <span className="badge">settings file</span>}
      </strong>
      <span className="muted small">
        {model.provider_label} · {model.model} · {model.address} · {model.has_key ? "key saved" : "no key"}
      </span>
      <span className="muted small">
        {abilities.is_window_known ? `${size} tokens` : `window unknown, ${size} tokens assumed`} ·{" "}
        {isTested ? TOOL_CALLS[abilities.tool_calls] : "tools not tested yet"}
        {model.created_at && (
          <>
            {" "}
            · added <Time at={model.created_at} />
          </>
        )}
      </span>
      <span className="muted small">{usedBy(model)}</span>
    </>
  );
}

/** The agents that use a model; they may belong to other people of this server. */
function usedBy({ used_by, is_default }: ModelShape): string {
  const users = [...(is_default ? ["agents without a model of their own"] : []), ...used_by];
  return users.length > 0 ? `Used by ${users.join(", ")}` : "Used by no agent";
}

interface DialogProps {
  model: ModelShape;
  onClose: () => void;
}

function EditDialog({ model, onClose, onSaved }: DialogProps & { onSaved: () => void }) {
  const provider = useQuery(queries.providers).data?.find((each) => each.id === model.provider);
  return (
    <Dialog title={`Edit ${model.name}`} onClose={onClose}>
      {provider && (
        <ModelForm
          provider={provider}
          model={model}
          onSaved={() => {
            onClose();
            onSaved();
          }}
          cancel={
            <button type="button" onClick={onClose}>
              Cancel
            </button>
          }
        />
      )}
    </Dialog>
  );
}

/** Removes a model; if agents use it, the server says which, and the owner decides again. */
function RemoveDialog({ model, onClose }: DialogProps) {
  const remove = queries.useAct(
    (force: boolean) => call("DELETE /models/{name}", { path: { name: model.name }, query: { force } }),
    MODEL_CHANGES,
    onClose,
  );
  const isInUse = remove.error instanceof ApiError && remove.error.code === "model_in_use";
  return (
    <Dialog title={`Remove ${model.name}?`} onClose={onClose}>
      {isInUse ? (
        <p className="bad-text" role="alert">
          {refusalText(remove.error)}
        </p>
      ) : (
        <p>{model.has_key ? "Its key is deleted too." : "It can be connected again later."}</p>
      )}
      {!isInUse && <ErrorText error={remove.error} />}
      <div className="row end">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" className="danger" disabled={remove.isPending} onClick={() => remove.mutate(isInUse)}>
          {isInUse ? "Remove anyway" : "Remove"}
        </button>
      </div>
    </Dialog>
  );
}
