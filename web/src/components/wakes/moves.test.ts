import { expect, it } from "vitest";
import { delayText } from "./moves";

it.each([
  [[0, 1, 2, 3, 4, 5], "not on Sundays"],
  [[0, 1, 2, 3, 4], "not on Saturdays or Sundays"],
  [[0, 3], "only on Mondays and Thursdays"],
  [undefined, "not allowed on this day"], // an agent that was deleted
])("a delay by a day that is not allowed, with the days %j, is: %s", (days, text) => {
  expect(delayText("day_not_allowed", days)).toBe(text);
});

it("uses the labels of other reasons", () => {
  expect(delayText("quiet_hours", [0])).toBe("quiet hours");
});
