import { expect, test } from "vitest";
import { chooseEntries, type Entry, type Group } from "./choose";

const entry = (group: Group, text: string, keywords = ""): Entry => ({
  id: `${group} ${text}`,
  group,
  icon: "plus",
  text,
  keywords,
  does: "/",
});

const ALL = [
  entry("Actions", "New session"),
  entry("Actions", "Theme: dark"),
  entry("Go to", "Agenda"),
  entry("Agents", "The gardener"),
  ...Array.from({ length: 9 }, (_, number) => entry("Sessions", `Garden ${number}`)),
  entry("Tables", "beds"),
];

const shown = (typed: string, messages: Entry[] = []) =>
  chooseEntries(typed, ALL, messages).map(({ group, entries }) => [group, ...entries.map((each) => each.text)]);

test("with nothing typed it offers the main things, in a fixed order, and no tables", () => {
  expect(shown("").map(([group, ...texts]) => [group, texts.length])).toEqual([
    ["Actions", 1],
    ["Go to", 1],
    ["Agents", 1],
    ["Sessions", 6],
  ]);
});

test("the group with the best match comes first, with at most six entries of each", () => {
  expect(shown("dark")).toEqual([["Actions", "Theme: dark"]]);
  expect(shown("gardener")).toEqual([["Agents", "The gardener"]]);
  expect(shown("garden").map(([group, ...texts]) => [group, texts.length])).toEqual([
    ["Sessions", 6],
    ["Agents", 1],
  ]);
});

test("messages are last, and are not filtered again", () => {
  const said = entry("Messages", "A session about something else");
  expect(shown("agenda", [said])).toEqual([
    ["Go to", "Agenda"],
    ["Messages", "A session about something else"],
  ]);
  expect(shown("nothing of this kind", [said])).toEqual([["Messages", "A session about something else"]]);
});

test("nothing found is nothing shown", () => {
  expect(shown("qqq")).toEqual([]);
});
