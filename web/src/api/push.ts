/** Push messages to this browser, also while the page is closed. */

import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { BASE } from "./base";
import { ApiError, call } from "./client";
import { me, pushBrowsers, queryClient } from "./queries";
import type { Browsers } from "./rest.generated";
import { shared } from "./shared";

const KEY = "wakeful.push";
const PATIENCE_MS = 20_000; // Chromium without its push service never answers

interface Subscribed {
  id: string; // on the server
  tokenId: string; // of the login it was made with
}

/** Why this browser cannot get push messages; null: it can, as far as is known. */
export type Obstacle = "insecure" | "unsupported" | "blocked" | null;

export class PushProblem extends Error {}

function read(): Subscribed | null {
  const saved = localStorage.getItem(KEY);
  return saved ? (JSON.parse(saved) as Subscribed) : null;
}

const subscribed = shared<Subscribed | null>(read());
export const useSubscribed = subscribed.use;

function save(now: Subscribed | null): void {
  if (now) localStorage.setItem(KEY, JSON.stringify(now));
  else localStorage.removeItem(KEY);
  subscribed.set(now);
}

export function isPushOn(): boolean {
  return localStorage.getItem(KEY) !== null && "Notification" in window && Notification.permission === "granted";
}

export function findObstacle(): Obstacle {
  if (!window.isSecureContext) return "insecure";
  if (!("serviceWorker" in navigator && "PushManager" in window && "Notification" in window)) return "unsupported";
  return Notification.permission === "denied" ? "blocked" : null;
}

/** Ask the browser for a subscription, and give it to the server. */
export async function subscribe(offer: Browsers): Promise<void> {
  if (!offer.public_key) throw new PushProblem(offer.problem ?? "");
  if ((await Notification.requestPermission()) !== "granted")
    throw new PushProblem("This browser was not allowed to show notifications.");
  const given = (await inTime(askBrowser(offer.public_key))).toJSON();
  const { p256dh = "", auth = "" } = given.keys ?? {};
  const body = { name: browserName(), endpoint: given.endpoint ?? "", p256dh, auth };
  const made = await call("POST /push-subscriptions", { body });
  const { token_id } = await queryClient.fetchQuery(me);
  // Before it is saved: a list without this browser would mean that it was removed elsewhere.
  await queryClient.fetchQuery({ ...pushBrowsers, staleTime: 0 });
  save({ id: made.id, tokenId: token_id });
}

async function askBrowser(publicKey: string): Promise<PushSubscription> {
  const { pushManager } = await navigator.serviceWorker.ready;
  const before = await pushManager.getSubscription();
  if (before && keyOf(before) !== publicKey) await before.unsubscribe(); // of a server that was here before
  return pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: publicKey });
}

function keyOf({ options }: PushSubscription): string {
  const bytes = new Uint8Array(options.applicationServerKey ?? new ArrayBuffer(0));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

function inTime<T>(work: Promise<T>): Promise<T> {
  const late = new Promise<never>((_, reject) => {
    const text = `The browser did not answer within ${PATIENCE_MS / 1000} seconds. Its push service may be blocked, or this browser has none. A channel such as ntfy works without one.`;
    setTimeout(() => reject(new PushProblem(text)), PATIENCE_MS);
  });
  const failed = work.catch((error: unknown) => {
    throw new PushProblem(`The browser refused: ${error instanceof Error ? error.message : String(error)}`);
  });
  return Promise.race([failed, late]);
}

/** Stop push messages to a browser; if it is this one, its own subscription ends too. */
export async function unsubscribe(id: string): Promise<void> {
  await call("DELETE /push-subscriptions/{subscription_id}", { path: { subscription_id: id } });
  if (read()?.id === id) await forget();
}

/** Before a logout: the next person who uses this browser must not see the notifications of the last one. */
export async function leave(): Promise<void> {
  const here = read();
  if (here) await unsubscribe(here.id).catch(forget);
}

async function forget(): Promise<void> {
  save(null);
  const registration = await navigator.serviceWorker?.getRegistration(`${BASE}/`);
  await (await registration?.pushManager.getSubscription())?.unsubscribe();
}

/** Keep the subscription of this browser: renew it after another login, and end it if it was removed elsewhere. */
export function useKeepPush(): void {
  const here = useSubscribed();
  const login = useQuery(me).data?.token_id;
  const { data } = useQuery({ ...pushBrowsers, enabled: here !== null });
  useEffect(() => {
    if (!here || !login || !data) return;
    const isListed = data.browsers.some((each) => each.id === here.id);
    if (here.tokenId !== login) {
      if (isPushOn()) void subscribe(data).catch(giveUp);
    } else if (!isListed) void forget().catch(() => undefined);
  }, [here, login, data]);
}

/** After a renewal that failed, offer to subscribe again; while the server is unavailable, it is tried later. */
function giveUp(error: unknown): void {
  const isAway = error instanceof ApiError && (error.status === 0 || error.status >= 500);
  if (!isAway) save(null);
}

const BROWSERS: [RegExp, string][] = [
  [/Edg/, "Edge"],
  [/OPR|Opera/, "Opera"],
  [/Firefox|FxiOS/, "Firefox"],
  [/Chrome|CriOS/, "Chrome"],
  [/Safari/, "Safari"],
];
const SYSTEMS: [RegExp, string][] = [
  [/Android/, "Android"],
  [/iPhone|iPad/, "iOS"],
  [/Windows/, "Windows"],
  [/Mac OS/, "macOS"],
  [/Linux/, "Linux"],
];

function browserName(): string {
  const nameIn = (names: [RegExp, string][]) => names.find(([pattern]) => pattern.test(navigator.userAgent))?.[1];
  const system = nameIn(SYSTEMS);
  return `${nameIn(BROWSERS) ?? "Browser"}${system ? ` on ${system}` : ""}`;
}
