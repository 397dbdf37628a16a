/** Which entries the palette shows, and in which order. */

import type { Command } from "../keyboard/keys";
import type { IconName } from "../ui/Icon";
import { match, type Range } from "./fuzzy";

export const GROUPS = ["Actions", "Go to", "Agents", "Sessions", "Tables", "Views", "Messages"] as const;
export type Group = (typeof GROUPS)[number];

export interface Entry {
  id: string; // of its own among all entries
  group: Group;
  icon: IconName;
  text: string;
  ranges?: readonly Range[]; // of the text to mark
  keywords?: string; // other words that find it
  detail?: string;
  snippet?: { text: string; ranges: readonly Range[] };
  command?: Command; // whose shortcut is shown
  does: string | (() => void); // an address, or something to do
}

const MAX_OF_GROUP = 6;
const MAX_MESSAGES = 20;
const AT_FIRST: Partial<Record<Group, number>> = { Actions: 1, "Go to": 4, Agents: 4, Sessions: 6 };

export interface ShownGroup {
  group: Group;
  entries: Entry[];
}

/** Return the entries that match, in groups: the group with the best match first, messages always last. */
export function chooseEntries(typed: string, entries: readonly Entry[], messages: readonly Entry[]): ShownGroup[] {
  const isEmpty = typed.trim() === "";
  const found = entries.flatMap((entry) => {
    const matched = match(typed, entry.text, entry.keywords);
    return matched ? [{ entry: { ...entry, ranges: matched.ranges }, score: matched.score }] : [];
  });
  const groups = GROUPS.map((group) => {
    const ofGroup = found.filter(({ entry }) => entry.group === group);
    const sorted = isEmpty ? ofGroup : ofGroup.toSorted((one, other) => other.score - one.score);
    const most = isEmpty ? (AT_FIRST[group] ?? 0) : MAX_OF_GROUP;
    return { group, entries: sorted.slice(0, most).map(({ entry }) => entry), best: sorted[0]?.score ?? 0 };
  });
  const ordered = isEmpty ? groups : groups.toSorted((one, other) => other.best - one.best);
  const inMessages = { group: "Messages" as const, entries: messages.slice(0, MAX_MESSAGES) };
  return [...ordered, inMessages].filter((each) => each.entries.length > 0);
}
