import { useSyncExternalStore } from "react";

const query = matchMedia("(max-width: 640px)");

function subscribe(onChange: () => void) {
  query.addEventListener("change", onChange);
  return () => query.removeEventListener("change", onChange);
}

/** Whether the window is as narrow as a phone. The style sheets use the same width. */
export function usePhone(): boolean {
  return useSyncExternalStore(subscribe, () => query.matches);
}
