import { expect, test } from "vitest";
import { match, pieces } from "./fuzzy";

/** Return the texts that match, the best first. */
function best(typed: string, texts: string[]): string[] {
  return texts
    .flatMap((text) => {
      const found = match(typed, text);
      return found ? [{ text, score: found.score }] : [];
    })
    .toSorted((one, other) => other.score - one.score)
    .map(({ text }) => text);
}

/** Return a text with its matching parts in brackets. */
function marked(typed: string, text: string): string | null {
  const found = match(typed, text);
  return (
    found && pieces(text, found.ranges).reduce((all, each) => all + (each.isMatch ? `[${each.text}]` : each.text), "")
  );
}

test("a beginning is better than a word's, that better than a part, that better than scattered letters", () => {
  const texts = ["goes around redwood", "begardens", "the garden", "garden notes", "something else"];
  expect(best("gard", texts)).toEqual(["garden notes", "the garden", "begardens", "goes around redwood"]);
});

test("of two equal matches the shorter text is first", () => {
  expect(best("note", ["notes of the week", "notes"])).toEqual(["notes", "notes of the week"]);
});

test("every word must match, in any order", () => {
  expect(marked("week gar", "Garden, weekly")).toBe("[Gar]den, [week]ly");
  expect(match("garden moon", "Garden, weekly")).toBeNull();
});

test("scattered letters begin at a word", () => {
  expect(marked("wr", "weekly report")).toBe("[w]eekly [r]eport");
  expect(match("eport", "weekly report")).not.toBeNull();
  expect(match("ert", "weekly report")).toBeNull();
});

test("case and accents do not matter, and marks stay in place behind an emoji", () => {
  expect(marked("cafe", "🌱 Café Ünter")).toBe("🌱 [Café] Ünter");
  expect(marked("UNTER", "🌱 Café Ünter")).toBe("🌱 Café [Ünter]");
  expect(marked("İst", "İstanbul")).toBe("[İst]anbul");
});

test("other scripts are found too", () => {
  expect(marked("сад", "Мой сад")).toBe("Мой [сад]");
  expect(marked("庭", "私の庭")).toBe("私の[庭]");
});

test("keywords match without being marked, and count less than the text", () => {
  expect(match("dark", "Theme", "dark light")).toMatchObject({ ranges: [] });
  expect(match("dark", "Dark", "")?.score).toBeGreaterThan(match("dark", "Theme", "dark")?.score ?? 0);
});

test("nothing typed matches everything", () => {
  expect(match("  ", "Anything")).toMatchObject({ ranges: [] });
});

test("pieces of overlapping ranges are not repeated", () => {
  expect(
    pieces("garden", [
      [2, 4],
      [0, 3],
    ]),
  ).toEqual([
    { text: "gard", isMatch: true },
    { text: "en", isMatch: false },
  ]);
});
