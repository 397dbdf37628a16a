import { expect, it } from "vitest";
import { MAX_IMAGE_BYTES, MAX_IMAGES } from "../../../api/server.generated";
import { sortFiles } from "./useAttachments";

const picture = { type: "image/png", size: 10 };

it("uploads files that are not images, too large, or one too many", () => {
  const text = { type: "text/plain", size: 10 };
  const large = { type: "image/png", size: MAX_IMAGE_BYTES + 1 };
  expect(sortFiles([picture, text, large], 0)).toEqual({ shown: [picture], others: [text, large] });
  expect(sortFiles([picture], MAX_IMAGES)).toEqual({ shown: [], others: [picture] });
});
