/** The error of an action that has no place of its own for errors: it is shown above the page. */

import { useSyncExternalStore } from "react";
import { explain } from "./client";

let text: string | null = null;
const listeners = new Set<() => void>();

function set(next: string | null): void {
  text = next;
  for (const listener of listeners) listener();
}

export const showPageError = (error: unknown): void => set(explain(error));
export const clearPageError = (): void => set(null);

export function usePageError(): string | null {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => text,
  );
}
