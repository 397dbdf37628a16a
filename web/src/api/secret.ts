/** The page secret: the part of a login in local storage, which belongs to host and port; a cookie to the host alone. */

const KEY = "wakeful-page-secret"; // the login page writes it: src/wakeful/people/login.py
const HEADER = "X-Wakeful-Page";

/** Add the secret to a request. It is read each time, because another tab may have logged in since. */
export function withSecret(init: RequestInit): RequestInit {
  const headers = new Headers(init.headers);
  const secret = localStorage.getItem(KEY);
  if (secret) headers.set(HEADER, secret);
  return { ...init, headers };
}

/** Return whether a request was sent with another secret than the browser has now. */
export function isOldSecret(sent: RequestInit): boolean {
  return new Headers(sent.headers).get(HEADER) !== (localStorage.getItem(KEY) || null);
}

export function keepSecret(secret: string): void {
  localStorage.setItem(KEY, secret);
}

export function forgetSecret(): void {
  localStorage.removeItem(KEY);
}

/** Call a listener when another tab logs in. */
export function onLogin(listener: () => void): () => void {
  const onStorage = (event: StorageEvent) => event.key === KEY && event.newValue && listener();
  window.addEventListener("storage", onStorage);
  return () => window.removeEventListener("storage", onStorage);
}
