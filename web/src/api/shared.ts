/** A value that components share. */

import { useSyncExternalStore } from "react";

export interface Shared<T> {
  set: (next: T) => void;
  get: () => T;
  /** The value; the component renders again when it is set. */
  use: () => T;
}

export function shared<T>(first: T): Shared<T> {
  let value = first;
  const listeners = new Set<() => void>();
  const subscribe = (listener: () => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  return {
    set: (next) => {
      value = next;
      for (const notify of listeners) notify();
    },
    get: () => value,
    use: () => useSyncExternalStore(subscribe, () => value),
  };
}
