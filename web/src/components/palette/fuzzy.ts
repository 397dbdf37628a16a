/** Fuzzy matching of what a person types with the names of things. */

export type Range = readonly [start: number, end: number]; // in UTF-16 units

export interface Match {
  score: number; // higher is better
  ranges: Range[]; // of the text that match, in order
}

const START_OF_TEXT = 100;
const START_OF_WORD = 80;
const IN_A_WORD = 50;
const SCATTERED = 20;
const IN_KEYWORDS = 10;

/** Match each word that was typed with a text or, without marking anything, with its keywords; null: one does not match. */
export function match(typed: string, text: string, keywords = ""): Match | null {
  const [folded, foldedKeywords] = [fold(text), fold(keywords)];
  let score = 0;
  const ranges: Range[] = [];
  for (const word of fold(typed).split(/\s+/).filter(Boolean)) {
    const found = matchWord(word, folded);
    if (found) {
      score += found.score;
      ranges.push(...found.ranges);
    } else if (foldedKeywords.includes(word)) score += IN_KEYWORDS;
    else return null;
  }
  return { score: score - text.length / 100, ranges: joined(ranges) };
}

function matchWord(word: string, text: string): Match | null {
  if (text.startsWith(word)) return { score: START_OF_TEXT, ranges: [[0, word.length]] };
  const starts = wordStarts(text);
  const start = starts.find((at) => text.startsWith(word, at));
  if (start !== undefined) return { score: START_OF_WORD, ranges: [[start, start + word.length]] };
  const inside = text.indexOf(word);
  if (inside >= 0) return { score: IN_A_WORD, ranges: [[inside, inside + word.length]] };
  for (const at of starts) {
    const ranges = scattered(word, text, at);
    if (ranges) return { score: SCATTERED - ranges.length, ranges };
  }
  return null;
}

/** Find the letters of a word in their order, the first at a word's start: "gdn" in "garden", "wr" in "weekly report". */
function scattered(word: string, text: string, from: number): Range[] | null {
  const ranges: Range[] = [];
  let at = from;
  for (const letter of word) {
    const found = text.indexOf(letter, at);
    if (found < 0 || (ranges.length === 0 && found !== from)) return null;
    ranges.push([found, found + letter.length]);
    at = found + letter.length;
  }
  return ranges;
}

function wordStarts(text: string): number[] {
  return [...text.matchAll(/[\p{L}\p{N}]+/gu)].map((each) => each.index);
}

/** Lower-case letters without accents, each in its place: the ranges are those of the text itself. */
function fold(text: string): string {
  return text.replace(/[^ -~]|[A-Z]/g, (letter) => letter.normalize("NFD").charAt(0).toLowerCase().charAt(0));
}

/** Sort ranges, and join those that touch or overlap. */
function joined(ranges: Range[]): Range[] {
  const result: Range[] = [];
  for (const [start, end] of ranges.toSorted((one, other) => one[0] - other[0])) {
    const last = result.at(-1);
    if (last && start <= last[1]) result[result.length - 1] = [last[0], Math.max(last[1], end)];
    else result.push([start, end]);
  }
  return result;
}

/** Cut a text into pieces that match and pieces that do not. Ranges outside of the text are ignored. */
export function pieces(text: string, ranges: readonly Range[]): { text: string; isMatch: boolean }[] {
  const found: { text: string; isMatch: boolean }[] = [];
  let at = 0;
  for (const [start, end] of joined([...ranges])) {
    found.push({ text: text.slice(at, start), isMatch: false }, { text: text.slice(start, end), isMatch: true });
    at = end;
  }
  found.push({ text: text.slice(at), isMatch: false });
  return found.filter((piece) => piece.text !== "");
}
