import { expect, test } from "vitest";
import { getQuestion, isProven, proofIn } from "./proof";

test("the proof in a login link is its code, and a token is itself", () => {
  expect(proofIn(" http://127.0.0.1:8420/base/login?code=wkf_a-b_c \n")).toBe("wkf_a-b_c");
  expect(proofIn("https://x/login?a=1&code=wkf_d&b=2")).toBe("wkf_d");
  expect(proofIn(" my token?code ")).toBe("my token?code");
});

test("requests that wait together share one question, and the next one asks again", async () => {
  const both = [isProven(), isProven()];
  getQuestion()?.(true);
  expect(await Promise.all(both)).toEqual([true, true]);
  expect(getQuestion()).toBeNull();
  const later = isProven();
  getQuestion()?.(false);
  expect(await later).toBe(false);
});
