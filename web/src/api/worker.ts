/** The service worker of this page: see src/worker/sw.ts. */

import { BASE } from "./base";

const ADDRESS = `${BASE}/ui/sw.js`;

interface Policies {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string };
}

/** Register the worker. Pages without HTTPS have none; where the browser forbids storage, the page works without it. */
export function startWorker(): void {
  if (!("serviceWorker" in navigator)) return;
  void navigator.serviceWorker
    .register(workerAddress(), { scope: `${BASE}/`, updateViaCache: "none" })
    .catch(() => undefined);
}

/** Call a listener with the address of a notification that was clicked. */
export function onOpenRequest(listener: (address: string) => void): () => void {
  if (!("serviceWorker" in navigator)) return () => undefined;
  const onMessage = ({ data }: MessageEvent) => {
    if (data?.type === "open" && typeof data.address === "string") listener(data.address);
  };
  navigator.serviceWorker.addEventListener("message", onMessage);
  return () => navigator.serviceWorker.removeEventListener("message", onMessage);
}

/** The address of the worker, as a browser with Trusted Types takes it. The policy allows nothing else. */
function workerAddress(): string {
  const { trustedTypes } = window as { trustedTypes?: Policies };
  const policy = trustedTypes?.createPolicy("service-worker", {
    createScriptURL: (url) => {
      if (url !== ADDRESS) throw new TypeError("not the service worker");
      return url;
    },
  });
  return policy ? policy.createScriptURL(ADDRESS) : ADDRESS;
}
