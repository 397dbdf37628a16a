/** Browser notifications, if they are allowed. */

import { BASE } from "../../api/base";
import type { Notification as Notice } from "../../api/frames.generated";
import { isPushOn } from "../../api/push";
import { queryClient, wake } from "../../api/queries";
import { localTimes } from "../text/TextWithTimes";
import { addressOf } from "./noticeAddress";

const KEY = "wakeful.notifications";

export function mayNotify(): boolean {
  return "Notification" in window && Notification.permission === "granted" && localStorage.getItem(KEY) === "on";
}

export async function allowNotifications(isOn: boolean): Promise<boolean> {
  if (!isOn || !("Notification" in window)) {
    localStorage.removeItem(KEY);
    return false;
  }
  const isAllowed = (await Notification.requestPermission()) === "granted";
  if (isAllowed) localStorage.setItem(KEY, "on");
  return isAllowed;
}

/**
 * Show a notification while the page is in the background, unless its wake is muted; the inbox has it anyway.
 *
 * A browser that gets push messages shows it by itself.
 */
export async function showNotification(notice: Notice): Promise<void> {
  if (!mayNotify() || isPushOn() || document.visibilityState === "visible" || (await isMuted(notice.wake_id))) return;
  const address = addressOf(notice);
  const options = {
    body: localTimes(notice.body, notice.times ?? {}, Date.now()),
    tag: notice.notification_id,
    icon: `${BASE}/ui/icon.svg`,
    data: { address },
  };
  // Chrome on Android has notifications of service workers only: the constructor throws there.
  const worker = await navigator.serviceWorker?.getRegistration(`${BASE}/`);
  if (worker?.active) {
    await worker.showNotification(notice.title, options); // the worker opens the address when it is clicked
    return;
  }
  const shown = new Notification(notice.title, options);
  shown.onclick = () => {
    window.focus();
    location.assign(BASE + address);
  };
}

/** Ask the server whether a wake is muted: one that has fired is not in the list of pending wakes. */
async function isMuted(wakeId: string | null | undefined): Promise<boolean> {
  if (!wakeId) return false;
  const found = await queryClient.fetchQuery({ ...wake(wakeId), staleTime: 0 }).catch(() => null);
  return found?.muted ?? false;
}
