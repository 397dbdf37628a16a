/** Results of the search in messages, as entries of the palette. */

import type { SearchResult } from "../../api/search";
import { absolute } from "../text/times";
import type { Entry } from "./choose";

const WHO: Record<string, string> = { user: "You", assistant: "Agent" };

/** Return the messages that were found, and the sessions that were found by their title and are not listed yet. */
export function toEntries(
  results: readonly SearchResult[],
  listed: readonly Entry[],
): { messages: Entry[]; sessions: Entry[] } {
  const known = new Set(listed.map((entry) => entry.id));
  const messages = results.flatMap((result) => (result.message_id === null ? [] : [ofMessage(result)]));
  const sessions = results.flatMap((result) => (result.message_id === null ? [ofTitle(result)] : []));
  return { messages, sessions: sessions.filter((entry) => !known.has(entry.id)) };
}

function ofMessage(result: SearchResult): Entry {
  const { message_id, session_id, session_title, role, created_at, snippet, matches } = result;
  const when = absolute(new Date(created_at), Date.now());
  return {
    id: `message ${message_id}`,
    group: "Messages",
    icon: role === "user" ? "send" : "chat",
    text: session_title || "New session",
    detail: role && WHO[role] ? `${WHO[role]}, ${when}` : when,
    snippet: { text: snippet, ranges: matches },
    does: `/ui/sessions/${session_id}?message=${encodeURIComponent(message_id ?? "")}`,
  };
}

function ofTitle({ session_id, session_title, created_at }: SearchResult): Entry {
  return {
    id: `session ${session_id}`,
    group: "Sessions",
    icon: "chat",
    text: session_title || "New session",
    detail: absolute(new Date(created_at), Date.now()),
    does: `/ui/sessions/${session_id}`,
  };
}
