/** The form of a model: its key, address and id, and limits and prices if its provider does not state them. */

import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useId, useRef, useState } from "react";
import { call } from "../../api/client";
import * as queries from "../../api/queries";
import type { ModelShape, ProviderShape } from "../../api/rest.generated";
import { MAX_LENGTH } from "../../api/server.generated";
import { ErrorText } from "../ui/ErrorText";
import { Form } from "../ui/Form";
import { changesOf, type Draft, draftOf, isMoved, losesKey, NUMBERS, newModelOf } from "./draft";
import { KeyField, MoreFields, TextField } from "./fields";
import { ModelIdField } from "./ModelIdField";
import { errorAt, isUnconfirmed, type ModelField } from "./modelErrors";
import { MODEL_CHANGES } from "./trial";

const HIDDEN: ModelField[] = ["name", ...NUMBERS];

interface Props {
  provider: ProviderShape;
  model: ModelShape | null; // null: a new one
  onSaved: (model: ModelShape) => void;
  children?: ReactNode; // above the buttons
  cancel: ReactNode;
}

export function ModelForm({ provider, model, onSaved, children, cancel }: Props) {
  const id = useId();
  const [draft, setDraft] = useState<Draft>(() => draftOf(provider, model));
  const { list, save } = useRequests(provider, model, draft, onSaved);
  const write = (field: keyof Draft, text: string) => {
    setDraft((before) => ({ ...before, [field]: text }));
    save.reset();
    if (field === "key" || field === "address") list.stop();
  };
  const at = (field: ModelField | null) => errorAt(field, save.error, list.error);
  const shared = (field: Exclude<keyof Draft, "key">) => ({
    id: `${id}-${field}`,
    value: draft[field],
    error: at(field),
    onChange: (text: string) => write(field, text),
  });
  const hasAddress = model !== null || provider.is_local || !provider.address || provider.address_example !== null;
  const address = (
    <TextField
      {...shared("address")}
      label="Address"
      maxLength={MAX_LENGTH.NewModel.address}
      placeholder={provider.address ?? provider.address_example ?? ""}
      hint={
        losesKey(draft, model) && (
          <span className="bad-text">
            The saved key belongs to the address before. Saving deletes it: enter the key for this address.
          </span>
        )
      }
    />
  );
  const keyField = (
    <KeyField
      id={`${id}-key`}
      provider={provider}
      isSaved={Boolean(model?.has_key) && !isMoved(draft, model)}
      value={draft.key}
      error={at("key")}
      onChange={(text) => write("key", text)}
      onEnter={draft.model === "" && provider.lists_models ? () => list.mutate() : null}
    />
  );
  const isHiddenWrong = Boolean((!hasAddress && at("address")) || HIDDEN.some(at));
  const isKeyUsual = provider.needs_key || !provider.is_local || model !== null;
  return (
    <Form act={save} onSubmit={() => save.mutate(true)}>
      {provider.note && <p className="muted small">{provider.note}</p>}
      {hasAddress && address}
      {isKeyUsual && keyField}
      <ModelIdField
        {...shared("model")}
        example={provider.example}
        listed={list.data?.models}
        asked={list.isPending ? draft.address.trim() || provider.label : null}
        onStop={list.stop}
        onList={provider.lists_models ? () => list.mutate() : null}
      />
      <details ref={(node) => void node?.toggleAttribute("open", node.open || isHiddenWrong)}>
        <summary>More settings</summary>
        <div className="stack">
          {!hasAddress && address}
          {!isKeyUsual && keyField}
          <MoreFields isNew={model === null} of={shared} />
        </div>
      </details>
      {children}
      <ErrorText error={at(null)} />
      <div className="row end">
        {cancel}
        {isUnconfirmed(save.error) && (
          <button type="button" disabled={save.isPending} onClick={() => save.mutate(false)}>
            Save without checking
          </button>
        )}
        <button type="submit" className="primary" disabled={save.isPending}>
          {save.isPending ? "Saving…" : "Save and test"}
        </button>
      </div>
    </Form>
  );
}

/** The requests of the form: list the provider's models, and save (after a check of the endpoint, or without). */
function useRequests(provider: ProviderShape, model: ModelShape | null, draft: Draft, onSaved: Props["onSaved"]) {
  const stopping = useRef(new AbortController());
  const list = useMutation({
    mutationFn: () => {
      const asked = { provider: provider.id, address: draft.address.trim() || null, key: draft.key.trim() || null };
      const isSaved = model !== null && !draft.key && !isMoved(draft, model);
      stopping.current = new AbortController();
      const { signal } = stopping.current;
      return call("POST /models/list", { body: isSaved ? { name: model.name } : asked, signal });
    },
  });
  const stop = () => {
    stopping.current.abort();
    list.reset();
  };
  const save = queries.useAct(
    (check: boolean) =>
      model
        ? call("PATCH /models/{name}", { path: { name: model.name }, body: { ...changesOf(draft, model), check } })
        : call("POST /models", { body: { ...newModelOf(provider, draft), check } }),
    MODEL_CHANGES,
    onSaved,
  );
  return { list: { ...list, stop }, save };
}
