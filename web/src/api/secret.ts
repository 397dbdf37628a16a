/** The half of the login that is not a cookie. The storage belongs to this origin, port included; a cookie reaches every server on the host. */

const KEY = "wakeful-page-secret"; // the login page writes it: src/wakeful/server/login.py
const HEADER = "X-Wakeful-Page";

/** Add the secret to a request. It is read each time, for another tab may have logged in since. */
export function withSecret(init: RequestInit): RequestInit {
  const headers = new Headers(init.headers);
  const secret = localStorage.getItem(KEY);
  if (secret) headers.set(HEADER, secret);
  return { ...init, headers };
}

export function forgetSecret(): void {
  localStorage.removeItem(KEY);
}

/** Call a listener when another tab logs in. */
export function onLogin(listener: () => void): () => void {
  const hear = (event: StorageEvent) => event.key === KEY && event.newValue && listener();
  window.addEventListener("storage", hear);
  return () => window.removeEventListener("storage", hear);
}
