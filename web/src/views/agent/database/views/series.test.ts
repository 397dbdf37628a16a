import { expect, it } from "vitest";
import { drawable, fittingLabels, positions, ticks } from "./series";

it("takes names from the first column and values from numeric ones", () => {
  const data = drawable(
    ["plant", "beds"],
    [
      ["bean", 3],
      ["leek", null],
    ],
  );
  expect(data).toEqual({ names: ["bean", "leek"], series: [{ name: "beds", values: [3, null] }] });
  expect(drawable(["plant"], [["bean"]])).toBeNull();
});

it("marks an axis with round numbers that cover its values", () => {
  expect(ticks(0, 10)).toEqual([0, 5, 10]);
  expect(ticks(0, 0)).toEqual([0, 0.5, 1]);
});

it("spaces days by their distance, and other names evenly", () => {
  expect(positions(["2026-11-01", "2026-11-03"])).toEqual([Date.parse("2026-11-01"), Date.parse("2026-11-03")]);
  expect(positions(["bean", "leek"])).toBeNull();
});

it("labels the last value and the first, and as many between them as fit", () => {
  const weeks = ["2026-W38", "2026-W39", "2026-W40", "2026-W41", "2026-W42", "2026-W43", "2026-W44", "2026-W46"];
  const labels = fittingLabels(weeks, (number) => 30 + 40 * number, 330);
  expect(labels.map((each) => each.name)).toEqual(["2026-W38", "2026-W41", "2026-W43", "2026-W46"]);
  expect(labels.every(({ name, at }) => at + 3.7 * name.length <= 330)).toBe(true);
  expect(fittingLabels(["one"], () => 5, 10)).toHaveLength(1);
  const [first, last] = fittingLabels(
    ["2026-11-01", "2026-11-03", "2026-11-12"],
    (number) => [8, 70, 330][number] ?? 0,
    338,
  );
  expect([first?.name, last?.name]).toEqual(["2026-11-01", "2026-11-12"]);
  const plants = ["pumpkins", "tomatoes", "leeks", "beans"]; // as on Home: 68 pixels from bar to bar
  expect(fittingLabels(plants, (number) => 34 + 68 * number, 272)).toHaveLength(4);
});
