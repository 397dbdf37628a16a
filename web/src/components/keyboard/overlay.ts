/** The overlay of the page: the palette, the list of shortcuts, or a dialog that the palette has opened. */

import { shared } from "../../api/shared";

export type Overlay =
  | { kind: "palette" }
  | { kind: "sheet" }
  | { kind: "schedule"; agentId: string; sessionId: string | null }; // without a session: the agent's next run

export const overlay = shared<Overlay | null>(null);

export const IS_MAC = /Mac|iPhone|iPad/.test(navigator.platform);
export const PALETTE_KEYS = IS_MAC ? "⌘K" : "Ctrl+K";
