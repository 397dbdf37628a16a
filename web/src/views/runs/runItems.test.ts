import { expect, it } from "vitest";
import type { SessionFrame } from "../../api/frames.generated";
import { itemsOf } from "./runItems";

const START: SessionFrame = { type: "stream_start" };
const said = (delta: string): SessionFrame => ({ type: "stream_delta", delta });
const read: SessionFrame = { type: "tool_started", tool: "read_file", args: {}, call_id: "c" };
const text = (...frames: SessionFrame[]) =>
  itemsOf(frames).map((item) => ("text" in item ? item.text : item.kind === "tool" ? item.tool : item.kind));

it("drops what a crash cut off after the last saved step", () => {
  const before = [START, said("First. "), read, said("Half an ")];
  expect(text(...before, START, said("The whole."))).toEqual(["First. ", "read_file", "The whole."]);
});

it("keeps what was said before a stop, after which a person continued the run", () => {
  const stopped: SessionFrame = { type: "stream_stopped" };
  expect(text(START, said("One."), stopped, START, said("Two."))).toEqual(["One.", "Two."]);
});
