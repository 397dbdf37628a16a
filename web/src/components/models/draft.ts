/** The fields of a model as they are written in its form, and the request that they make. */

import type { ModelChange, ModelShape, NewModel, ProviderShape } from "../../api/rest.generated";

export const NUMBERS = ["context_window", "output_limit", "input_price", "output_price"] as const;

type NumberName = (typeof NUMBERS)[number];
export type Draft = Record<"key" | "address" | "model" | "name" | NumberName, string>;

export function draftOf(provider: ProviderShape, model: ModelShape | null): Draft {
  const numbers = NUMBERS.map((name) => [name, model?.[name]?.toString() ?? ""]);
  return {
    key: "", // a saved key is never sent to the page
    address: model?.address ?? provider.address ?? "",
    model: model?.model ?? "",
    name: model?.name ?? "",
    ...(Object.fromEntries(numbers) as Record<NumberName, string>),
  };
}

/** Return whether the draft's address is another one than the saved model's. */
export function isMoved(draft: Draft, model: ModelShape | null): boolean {
  const plain = (address: string) => address.trim().replace(/\/+$/, "");
  return model !== null && plain(draft.address) !== plain(model.address);
}

/** Return whether saving drops the model's key, which belongs to its address. */
export function losesKey(draft: Draft, model: ModelShape | null): boolean {
  return Boolean(model?.has_key) && draft.key === "" && isMoved(draft, model);
}

export function newModelOf(provider: ProviderShape, draft: Draft): NewModel {
  return {
    provider: provider.id,
    model: draft.model.trim(),
    name: draft.name.trim() || null,
    address: draft.address.trim() || null,
    key: draft.key.trim() || null,
    ...numbersOf(draft),
  };
}

/** Return the changes of a draft to a saved model: fields that are as they were are left out. */
export function changesOf(draft: Draft, model: ModelShape): ModelChange {
  const numbers = Object.entries(numbersOf(draft)).filter(([name, value]) => value !== model[name as NumberName]);
  return {
    ...(draft.model.trim() !== model.model && { model: draft.model.trim() }),
    ...(isMoved(draft, model) && { address: draft.address.trim() }),
    ...(draft.key.trim() && { key: draft.key.trim() }),
    ...Object.fromEntries(numbers),
  };
}

function numbersOf(draft: Draft): Record<NumberName, number | null> {
  const read = NUMBERS.map((name) => [name, draft[name] === "" ? null : Number(draft[name])]);
  return Object.fromEntries(read) as Record<NumberName, number | null>;
}
