/** The page's keyboard shortcuts, and which key press is one of them. */

export type Command = "palette" | "sheet" | "new" | "agenda" | "inbox" | "agents" | "settings" | "next" | "previous";

export interface Shortcut {
  keys: string; // one key, or two to press one after the other
  text: string;
  command: Command;
}

export const SHORTCUTS: readonly Shortcut[] = [
  { keys: "/", text: "Search, or jump to anything", command: "palette" },
  { keys: "n", text: "New session", command: "new" },
  { keys: "g a", text: "Go to the agenda", command: "agenda" },
  { keys: "g i", text: "Go to the inbox", command: "inbox" },
  { keys: "g g", text: "Go to the agents", command: "agents" },
  { keys: "g s", text: "Go to the settings", command: "settings" },
  { keys: "j", text: "Next entry of a list", command: "next" },
  { keys: "k", text: "Previous entry of a list", command: "previous" },
  { keys: "?", text: "Show this list", command: "sheet" },
];

/** Return the keys of a command, to be shown beside it. */
export function keysOf(command: Command): string {
  return SHORTCUTS.find((each) => each.command === command)?.keys ?? "";
}

export interface Pressed {
  key: string;
  code: string;
  ctrlKey: boolean;
  altKey: boolean;
  metaKey: boolean;
  shiftKey: boolean;
}

/** Return the key of a press without modifiers. Where the layout has other letters, the key's place counts. */
export function plainKey(pressed: Pressed): string | null {
  if (pressed.ctrlKey || pressed.altKey || pressed.metaKey) return null;
  const key = latinKey(pressed);
  // Many layouts have / and ? behind Shift. A letter with Shift is another key.
  return /^[a-z]$/.test(key) && pressed.shiftKey ? null : key;
}

/** Say whether a press is the palette's: Cmd-K on a Mac, Ctrl-K elsewhere. A Mac's Ctrl-K deletes the rest of a line. */
export function isPaletteKey(pressed: Pressed, isMac: boolean): boolean {
  const [wanted, other] = isMac ? [pressed.metaKey, pressed.ctrlKey] : [pressed.ctrlKey, pressed.metaKey];
  return wanted && !other && !pressed.altKey && !pressed.shiftKey && latinKey(pressed) === "k";
}

function latinKey({ key, code }: Pressed): string {
  if (/^[ -~]$/.test(key)) return key.toLowerCase();
  return /^Key[A-Z]$/.test(code) && key.length === 1 ? code.slice(3).toLowerCase() : key;
}

/** Return the command of a key and of the key before it (""), or the keys to remember for the next press. */
export function commandOf(before: string, key: string): { command: Command | null; kept: string } {
  const both = before ? `${before} ${key}` : key;
  const found = SHORTCUTS.find((each) => each.keys === both) ?? SHORTCUTS.find((each) => each.keys === key);
  if (found) return { command: found.command, kept: "" };
  return { command: null, kept: SHORTCUTS.some((each) => each.keys.startsWith(`${key} `)) ? key : "" };
}
