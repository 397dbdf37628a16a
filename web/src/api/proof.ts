/** Asks the person at this browser to prove who they are, when a request needs a newer login than theirs. */

import { shared } from "./shared";

type Answer = (isProven: boolean) => void;

const asked = shared<Answer | null>(null);
let answer: Promise<boolean> | null = null; // one question for all requests that wait for it

/** Show the question, and return whether it was answered with a proof: then the request can be sent again. */
export function isProven(): Promise<boolean> {
  answer ??= new Promise<boolean>(asked.set).finally(() => {
    asked.set(null);
    answer = null;
  });
  return answer;
}

/** The function that answers the question; null while there is none. */
export const useQuestion = asked.use;
export const getQuestion = asked.get;

/** The code of a login link, or the text itself. */
export function proofIn(text: string): string {
  return /[?&]code=([^&\s]+)/.exec(text)?.[1] ?? text.trim();
}
