/** Moving through the entries of a list by keyboard. */

const ENTRIES = ".inbox-link, .agent-card, .run-row, .agenda-entry";
const SESSIONS = ".session-row";

/** Focus the next (1) or previous (-1) entry: of the list that has the focus, else of the page, else of the sidebar. */
export function moveInList(step: 1 | -1): void {
  const focused = document.activeElement;
  const ofPage = visible(`main :is(${ENTRIES})`);
  const entries = focused?.matches(SESSIONS) || ofPage.length === 0 ? visible(SESSIONS) : ofPage;
  const at = entries.indexOf(focused as HTMLElement);
  const next = at < 0 ? startOf(entries, step) : entries[at + step];
  next?.focus();
}

/** Begin at the entry that is open, else at the first or the last. */
function startOf(entries: HTMLElement[], step: 1 | -1): HTMLElement | undefined {
  const open = entries.find((each) => each.matches("[aria-current], [aria-pressed=true]"));
  return open ?? (step > 0 ? entries[0] : entries.at(-1));
}

function visible(selector: string): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>(selector)].filter((each) =>
    each.checkVisibility({ visibilityProperty: true }),
  );
}
