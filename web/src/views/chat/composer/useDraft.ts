import { useState } from "react";

/** Unsent text, which survives a reload. */
export function useDraft(key: string): [string, (text: string) => void] {
  const name = `wakeful.draft.${key}`;
  const [draft, setDraft] = useState(() => ({ name, text: localStorage.getItem(name) ?? "" }));
  const current = draft.name === name ? draft : { name, text: localStorage.getItem(name) ?? "" };
  const set = (text: string) => {
    setDraft({ name, text });
    if (text) localStorage.setItem(name, text);
    else localStorage.removeItem(name);
  };
  return [current.text, set];
}
