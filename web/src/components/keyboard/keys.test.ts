import { expect, test } from "vitest";
import { commandOf, isPaletteKey, type Pressed, plainKey, SHORTCUTS } from "./keys";

const press = (key: string, more: Partial<Pressed> = {}): Pressed => ({
  key,
  code: "",
  ctrlKey: false,
  altKey: false,
  metaKey: false,
  shiftKey: false,
  ...more,
});

test("one key, or two one after the other", () => {
  expect(commandOf("", "n")).toEqual({ command: "new", kept: "" });
  expect(commandOf("", "g")).toEqual({ command: null, kept: "g" });
  expect(commandOf("g", "a")).toEqual({ command: "agenda", kept: "" });
  expect(commandOf("g", "g")).toEqual({ command: "agents", kept: "" });
  expect(commandOf("", "a")).toEqual({ command: null, kept: "" });
});

test("a second key that fits nothing counts as a first one", () => {
  expect(commandOf("g", "n")).toEqual({ command: "new", kept: "" });
  expect(commandOf("g", "x")).toEqual({ command: null, kept: "" });
});

test("no shortcut is the beginning of another", () => {
  for (const { keys } of SHORTCUTS)
    expect(SHORTCUTS.filter((each) => each.keys.startsWith(`${keys} `)).map((each) => each.keys)).toEqual([]);
});

test("combinations that belong to the browser are left alone", () => {
  expect(plainKey(press("n", { ctrlKey: true }))).toBeNull();
  expect(plainKey(press("n", { metaKey: true }))).toBeNull();
  expect(plainKey(press("n", { altKey: true }))).toBeNull();
  expect(plainKey(press("N", { shiftKey: true }))).toBeNull();
});

test("Caps Lock, other layouts and signs behind Shift", () => {
  expect(plainKey(press("N"))).toBe("n");
  expect(plainKey(press("т", { code: "KeyN" }))).toBe("n");
  expect(plainKey(press("?", { shiftKey: true }))).toBe("?");
  expect(plainKey(press("/", { shiftKey: true, code: "Digit7" }))).toBe("/");
  expect(plainKey(press("Escape", { code: "Escape" }))).toBe("Escape");
});

test("the palette opens with Cmd-K on a Mac and with Ctrl-K elsewhere", () => {
  expect(isPaletteKey(press("k", { ctrlKey: true }), false)).toBe(true);
  expect(isPaletteKey(press("л", { ctrlKey: true, code: "KeyK" }), false)).toBe(true);
  expect(isPaletteKey(press("k", { ctrlKey: true }), true)).toBe(false);
  expect(isPaletteKey(press("k", { metaKey: true }), true)).toBe(true);
  expect(isPaletteKey(press("k", { ctrlKey: true, shiftKey: true }), false)).toBe(false);
  expect(isPaletteKey(press("k"), false)).toBe(false);
});
