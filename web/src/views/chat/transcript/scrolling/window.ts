/** The part of a long transcript that is rendered: the latest turns, or those around a message. */

export interface Shown {
  first: number;
  end: number | null; // the first turn that is not rendered; null: it reaches to the latest, and grows with it
}

const LATEST = 16;
const AROUND = 8; // turns before a message, and after it
const MORE = 2; // as many as are rendered well within one frame

export function latest(total: number): Shown {
  return { first: Math.max(0, total - LATEST), end: null };
}

/** Return a part with a turn: the one that is rendered, if it has it. */
export function withTurn(shown: Shown, place: number, total: number): Shown {
  if (place >= shown.first && place < (shown.end ?? total)) return shown;
  return upTo({ first: Math.max(0, place - AROUND), end: place + AROUND }, total);
}

export function earlier(shown: Shown): Shown {
  return { ...shown, first: Math.max(0, shown.first - MORE) };
}

export function later(shown: Shown, total: number): Shown {
  return shown.end === null ? shown : upTo({ ...shown, end: shown.end + MORE }, total);
}

function upTo({ first, end }: { first: number; end: number }, total: number): Shown {
  return { first, end: end < total ? end : null };
}
