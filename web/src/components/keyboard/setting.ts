/** Whether this browser uses keyboard shortcuts: single keys get in the way of some screen readers and of dictation. */

import { shared } from "../../api/shared";

const KEY = "wakeful.shortcuts";
const isOn = shared(localStorage.getItem(KEY) !== "off");

export const useShortcutsOn = isOn.use;
export const areShortcutsOn = isOn.get;

export function setShortcutsOn(on: boolean): void {
  if (on) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, "off");
  isOn.set(on);
}
