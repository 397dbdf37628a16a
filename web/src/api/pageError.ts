/** The error of an action that has no place of its own for errors: it is shown above the page. */

import { explain } from "./client";
import { shared } from "./shared";

const text = shared<string | null>(null);

export const showPageError = (error: unknown): void => text.set(explain(error));
export const clearPageError = (): void => text.set(null);
export const usePageError = text.use;
