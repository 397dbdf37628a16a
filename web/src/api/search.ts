/** The search in messages and titles of all sessions. */

import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { call } from "./client";

export const MIN_SEARCH = 3; // letters
const MAX_RESULTS = 20;

export const search = (q: string) =>
  queryOptions({
    queryKey: ["search", q],
    queryFn: () => call("GET /search", { query: { q, limit: MAX_RESULTS } }),
    staleTime: 5_000,
    retry: false,
    placeholderData: keepPreviousData, // the list stays while someone types
  });
