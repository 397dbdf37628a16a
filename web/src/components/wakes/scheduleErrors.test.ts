import { expect, it } from "vitest";
import { ApiError } from "../../api/client";
import { errorAt, refusalText } from "./scheduleErrors";

const refused = (code: string, message: string, field?: string) => new ApiError(400, code, message, undefined, field);

it.each([
  [
    refused("invalid", "`interval_seconds` must be at least 10 s, got 5 s.", "interval_seconds"),
    "“Every” must be at least 10 s, got 5 s.",
  ],
  [
    refused("when_unreadable", "'soonish' is not a time. Accepted forms: `30m`, `2h`.", "when"),
    "“soonish” is not a time. Try “30m”, “tomorrow at 9” or “friday 14:30”.",
  ],
  [
    refused("when_past", "'9' is not in the future: it means 2026-11-17T09:00:00+01:00. Accepted forms: x.", "when"),
    "“9” is not in the future.",
  ],
  [
    refused("slot_taken", "This session already has a pending recall ('0199')."),
    "This session has a scheduled run already. Edit or cancel that one.",
  ],
])("a refusal is written in the words of the form", (error, text) => expect(refusalText(error)).toBe(text));

it("a refusal belongs to the field it is about, else to the form", () => {
  const ofTime = refused("when_past", "", "when");
  const ofNone = refused("slot_taken", "");
  expect(errorAt("when", null, ofTime)).toBe(ofTime);
  expect(errorAt("what", ofTime)).toBeUndefined();
  expect(errorAt(null, ofTime, ofNone)).toBe(ofNone);
  expect(errorAt(null, null, ofTime)).toBeUndefined();
});
