import { expect, test } from "vitest";
import { ApiError } from "../../api/client";
import { errorAt, isUnconfirmed, refusalText } from "./modelErrors";

test("a refusal has no words for the command line or the API", () => {
  const unchecked =
    "Ollama at http://x cannot be reached. Nothing was saved. To save it without this check, use `--no-check` (`check: false`).";
  expect(refusalText(new ApiError(503, "model_unchecked", unchecked))).toBe(
    "Ollama at http://x cannot be reached. Nothing was saved.",
  );
  const inUse =
    "The model 'mine' is used by Wakeful (Owner). Give them another model first, or remove it anyway (`wakeful model rm mine --force`, `?force=true`): then their runs fail until they have another one.";
  expect(refusalText(new ApiError(409, "model_in_use", inUse))).toBe(
    "The model 'mine' is used by Wakeful (Owner). Give them another model first, or remove it anyway: then their runs fail until they have another one.",
  );
  const small = "`output_limit` must be smaller than `context_window`.";
  expect(refusalText(new ApiError(400, "bad", small))).toBe("“Output limit” must be smaller than “Context window”.");
});

test("an error is shown at its field, or at none", () => {
  const key = new ApiError(503, "model_unchecked", "No.", undefined, "key");
  const old = new ApiError(403, "login_too_old", "Old.");
  expect(errorAt("key", null, key)).toBe(key);
  expect(errorAt("address", key)).toBeUndefined();
  expect(errorAt(null, key, old)).toBe(old);
  expect([key, old].map(isUnconfirmed)).toEqual([true, false]);
});
