/** The items of a run from its frames, which may be of several attempts. */

import type { SessionFrame } from "../../api/frames.generated";
import { addFrame, settleAll } from "../chat/transcript/frames";
import type { Item } from "../chat/transcript/items";

const ENDS: readonly string[] = ["stream_end", "stream_stopped", "error"] satisfies SessionFrame["type"][];
const SAVED: readonly string[] = ["tool", "plan", "note"] satisfies Item["kind"][]; // with the step that they end

/** A run that a crash cut off goes on from its last saved step, so what it said after that step is void. */
export function itemsOf(frames: readonly SessionFrame[]): Item[] {
  let items: Item[] = [];
  let kept = 0; // how many of them stay if the run starts once more
  for (const frame of frames) {
    if (frame.type === "stream_start") {
      kept = Math.max(kept, items.findLastIndex((item) => SAVED.includes(item.kind)) + 1);
      items = items.slice(0, kept);
    } else if (ENDS.includes(frame.type)) {
      items = settleAll(items);
      kept = items.length;
    } else items = addFrame(items, frame, null);
  }
  return items;
}
