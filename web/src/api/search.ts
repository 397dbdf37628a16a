/** The search in messages and titles of all sessions. */

import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { getJson } from "./client";

export interface SearchResult {
  session_id: string;
  session_title: string;
  agent_id: string;
  message_id: string | null; // null: the title matches
  run_id: string | null;
  role: string | null;
  created_at: string;
  snippet: string;
  matches: [number, number][]; // ranges of the snippet, in UTF-16 units
}

interface SearchAnswer {
  results: SearchResult[];
  next?: string | null;
  index: { is_complete: boolean; percent: number };
}

export const MIN_SEARCH = 3; // letters
const MAX_RESULTS = 20;

export const search = (q: string) =>
  queryOptions({
    queryKey: ["search", q],
    queryFn: () => getJson<SearchAnswer>(`/search?${new URLSearchParams({ q, limit: String(MAX_RESULTS) })}`),
    staleTime: 5_000,
    retry: false,
    placeholderData: keepPreviousData, // the list stays while someone types
  });
