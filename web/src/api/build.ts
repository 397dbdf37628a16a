/** Which build of the page the server has: after an upgrade its files have other names. */

import { BASE } from "./base";
import { shared } from "./shared";

/** The address of the script that runs here. */
const RUNNING = new URL(document.querySelector<HTMLScriptElement>("script[type=module][src]")?.src ?? location.href)
  .pathname;

const isOutdated = shared(false);
export const useIsOutdated = isOutdated.use;

/** Ask whether the server answers, and whether it has the build that runs here. */
export async function checkBuild(): Promise<"same" | "other" | "away"> {
  const response = await fetch(`${BASE}/ui/`, { cache: "no-cache" }).catch(() => null);
  if (!response?.ok) return "away";
  const isSame = (await response.text()).includes(RUNNING);
  isOutdated.set(!isSame);
  return isSame ? "same" : "other";
}
