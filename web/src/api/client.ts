import { BASE } from "./base";
import { isProven } from "./proof";
import type { Routes } from "./rest.generated";
import { isOldSecret, withSecret } from "./secret";

/** An error response of the server. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint?: string,
    readonly field?: string,
  ) {
    super(message);
  }
}

type Route = keyof Routes;
type Part<K extends string, T> = keyof T extends never ? { [P in K]?: T } : { [P in K]: T };
type Loose<K extends string, T> = Partial<T> extends T ? { [P in K]?: T } : Part<K, T>;
export type Given<R extends Route> = Part<"path", Routes[R]["path"]> &
  Loose<"query", Routes[R]["query"]> &
  Pick<Routes[R], "body"> & { signal?: AbortSignal };
export type Answer<R extends Route> = Routes[R]["answer"];

interface AnyGiven {
  path?: Record<string, string>;
  query?: Record<string, unknown>;
  body?: unknown;
  signal?: AbortSignal;
}

const listeners = new Set<(reason: ApiError) => void>();

/** Call a listener when the server no longer accepts this browser's login. */
export function onSignedOut(listener: (reason: ApiError) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Call a route by its name; its parameters and answer are typed from the OpenAPI document. */
export async function call<R extends Route>(
  route: R,
  // biome-ignore lint/complexity/noBannedTypes: `{}` extends a type that has no required key
  ...[given]: {} extends Given<R> ? [Given<R>?] : [Given<R>]
): Promise<Answer<R>> {
  const [method, template] = route.split(" ") as [string, string];
  const { path = {}, query = {}, body, signal } = (given ?? {}) as AnyGiven;
  const address = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path[name] ?? ""));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") search.set(name, String(value));
  }
  const init: RequestInit = { method, credentials: "same-origin", ...(signal && { signal }) };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "Content-Type": "application/json" };
  }
  return (await send(search.size ? `${address}?${search}` : address, init)) as Answer<R>;
}

export interface Uploaded {
  name: string;
  path: string;
  size: number;
}

export async function upload(sessionId: string, files: File[]): Promise<Uploaded[]> {
  const form = new FormData();
  for (const file of files) form.append("files", file, file.name);
  const answer = await send(`/sessions/${encodeURIComponent(sessionId)}/uploads`, { method: "POST", body: form });
  return (answer as { files: Uploaded[] }).files;
}

/** Load a response that is not JSON, such as an image. */
export async function loadBlob(address: string): Promise<Blob> {
  return (await ask(address, {})).blob();
}

async function send(address: string, init: RequestInit): Promise<unknown> {
  const response = await ask(address, init);
  return response.status === 204 ? undefined : response.json();
}

const REMEMBER_MS = 1_000; // for so long another node of the server may know the earlier time of the login

async function ask(address: string, init: RequestInit, proofs = 0): Promise<Response> {
  let response: Response;
  const sent = withSecret(init);
  try {
    response = await fetch(BASE + address, sent);
  } catch {
    throw init.signal?.aborted ? new ApiError(0, "cancelled", "Cancelled.") : unreachable(init.method);
  }
  if (response.ok) return response;
  const refused = await readError(response);
  if (refused.code === "login_too_old" && proofs < 2) {
    if (proofs === 1) await new Promise((resume) => setTimeout(resume, REMEMBER_MS));
    else if (!(await isProven())) throw new ApiError(403, "not_confirmed", NOT_CONFIRMED);
    return ask(address, init, proofs + 1);
  }
  if (response.status === 401) {
    if (isOldSecret(sent)) return ask(address, init, proofs); // another tab has just logged in
    for (const notify of listeners) notify(refused);
  }
  throw refused;
}

const NOT_CONFIRMED = "Nothing was changed, because it was not confirmed that it is you.";

/** Only what is read is tried again by itself. The error of an action stays, so it must be true later too. */
export function unreachable(method = "GET"): ApiError {
  return method === "GET"
    ? new ApiError(
        0,
        "unreachable",
        "The server is not responding.",
        "Check that it is running; this page will try again.",
      )
    : new ApiError(0, "unreachable", "The server did not respond.", "Check that it is running, then try again.");
}

export async function readError(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => null)) as { error?: Record<string, string> } | null;
  const error = body?.error ?? {};
  return new ApiError(
    response.status,
    error.code ?? "unknown",
    error.message ?? `The server answered ${response.status}.`,
    error.hint,
    error.field,
  );
}

/** Return the text of an error, with the server's hint. */
export function explain(error: unknown): string {
  if (error instanceof ApiError) return error.hint ? `${error.message} ${error.hint}` : error.message;
  return error instanceof Error ? error.message : String(error);
}
