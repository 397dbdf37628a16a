/**
 * The service worker: a page that says that the server is unreachable, and push messages.
 *
 * It keeps static files only. Whatever has no name below goes to the server as if there were no worker: every answer of
 * the API, and the page itself, so that after an upgrade nobody gets an old one.
 */

import { addressOf, type NoticeTarget } from "../components/frame/noticeAddress";

declare const self: ServiceWorkerGlobalScope;
declare const BUILD: string; // changes with every build of the page

const CACHE = `wakeful-${BUILD}`;
const BASE = self.location.pathname.replace("/ui/sw.js", ""); // the path under which a proxy has the server
const OFFLINE = `${BASE}/ui/offline.html`;
const KEPT = [OFFLINE, ...["offline.css", "offline.js", "icon.svg"].map((name) => `${BASE}/ui/${name}`)];
const ASSETS = `${BASE}/ui/assets/`; // their names contain a hash of their content, so a kept one is never out of date
const PROXY_ERRORS = [502, 504]; // from a proxy in front of a server that is down

self.addEventListener("install", (event) => {
  event.waitUntil(prepare());
});

async function prepare(): Promise<void> {
  const cache = await caches.open(CACHE);
  await cache.addAll(KEPT.map((path) => new Request(path, { cache: "reload" })));
  await self.skipWaiting(); // it serves pages of any build alike
}

self.addEventListener("activate", (event) => {
  event.waitUntil(takeOver());
});

async function takeOver(): Promise<void> {
  for (const name of await caches.keys()) if (name !== CACHE) await caches.delete(name);
  await self.clients.claim();
}

// Without navigation preload: it would request a download twice, and its ticket works once.
self.addEventListener("fetch", (event) => {
  const { method, mode, url } = event.request;
  const { origin, pathname } = new URL(url);
  if (method !== "GET" || origin !== self.location.origin) return;
  if (mode === "navigate" && isPage(pathname)) event.respondWith(openPage(event.request));
  else if (pathname.startsWith(ASSETS)) event.respondWith(loadAsset(event.request));
  else if (KEPT.includes(pathname)) event.respondWith(loadKept(event.request));
});

function isPage(pathname: string): boolean {
  return pathname === `${BASE}/` || pathname.startsWith(`${BASE}/ui/`);
}

async function openPage(request: Request): Promise<Response> {
  const loaded = await fetch(request).catch(() => null);
  if (loaded && !PROXY_ERRORS.includes(loaded.status)) return loaded;
  return (await caches.match(OFFLINE)) ?? loaded ?? Response.error();
}

async function loadAsset(request: Request): Promise<Response> {
  const cache = await caches.open(CACHE);
  const kept = await cache.match(request);
  if (kept) return kept;
  const loaded = await fetch(request);
  if (loaded.ok) await cache.put(request, loaded.clone());
  return loaded;
}

async function loadKept(request: Request): Promise<Response> {
  return fetch(request).catch(async () => (await caches.match(request)) ?? Response.error());
}

interface PushMessage extends NoticeTarget {
  id: string;
  title: string;
  body: string;
}

self.addEventListener("push", (event) => {
  event.waitUntil(show(event.data?.json() as PushMessage));
});

async function show(message: PushMessage): Promise<void> {
  if (message.code === "needs_approval" && (await isOnScreen(addressOf(message)))) return;
  await self.registration.showNotification(message.title, {
    body: message.body,
    tag: message.id, // a message that is sent once more replaces the first
    icon: `${BASE}/ui/icon-192.png`,
    data: { address: addressOf(message) },
  });
}

/** Whether a visible page is at an address. Browsers allow a push message without a notification only then. */
async function isOnScreen(address: string): Promise<boolean> {
  const windows = await self.clients.matchAll({ type: "window" });
  return windows.some((each) => each.visibilityState === "visible" && new URL(each.url).pathname === BASE + address);
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open((event.notification.data as { address: string }).address));
});

/** Go to an address in a page that is open, or in a new one. */
async function open(address: string): Promise<void> {
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const page = windows.find((each) => isPage(new URL(each.url).pathname));
  if (!page) {
    await self.clients.openWindow(BASE + address);
    return;
  }
  page.postMessage({ type: "open", address });
  await page.focus();
}
