"""Search in messages and titles of sessions."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from wakeful.domain.sessions.search import Found, IndexProgress, Query, Range, Snippet, make_snippet, parse_query
from wakeful.service.sessions.search_index import SearchIndex
from wakeful.store.store import Store

_LAST = 2**62  # more than any number in the index
_MORE = 100  # texts that are read at a time, after the first
_MAX_COMPARED = 1_000  # texts for one answer: more may have the terms of a query and still not match it

Kind = Literal["titles", "messages"]  # titles are found first


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a page of an answer begins."""

    kind: Kind = "titles"
    before: int = _LAST  # number in the index


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A message or title that matches, and the part of it that is shown."""

    found: Found
    snippet: Snippet


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A page of what a search found: titles first, then messages, the latest first."""

    hits: Sequence[Hit]
    next: Place | None
    index: IndexProgress


class Search:
    def __init__(self, store: Store, index: SearchIndex) -> None:
        self._store = store
        self._index = index

    async def find(self, user_id: str, words: str, most: int, place: Place | None = None) -> Answer:
        """Return a page of a user's messages and titles that match. It may be short, or empty, and yet have a next."""
        query = parse_query(words)
        hits, after = await self._find(user_id, query, most, place or Place()) if query.terms else ([], None)
        return Answer(hits=hits, next=after, index=await self._index.progress())

    async def _find(self, user_id: str, query: Query, most: int, place: Place) -> tuple[list[Hit], Place | None]:
        hits: list[Hit] = []
        compared = 0
        asked = most + 1
        while compared < _MAX_COMPARED:
            page = await self._read(user_id, query, place, asked)
            hits += await asyncio.to_thread(_compare, query, page)
            if len(hits) > most:
                return hits[:most], _place_of(hits[most - 1].found)
            compared += len(page)
            if len(page) == asked:
                place = _place_of(page[-1])
            elif place.kind == "titles":
                place = Place(kind="messages")
            else:
                return hits, None
            asked = _MORE
        return hits, place

    async def _read(self, user_id: str, query: Query, place: Place, most: int) -> list[Found]:
        return await self._store.read(
            lambda tx: tx.search.find(user_id, query.terms, place.before, most, is_title=place.kind == "titles")
        )


def _place_of(found: Found) -> Place:
    """Return where the texts after this one begin."""
    return Place(kind="titles" if found.message_id is None else "messages", before=found.number)


def _compare(query: Query, page: Sequence[Found]) -> list[Hit]:
    """Keep the texts that match."""
    compared = ((found, query.find(found.text)) for found in page)
    return [Hit(found=found, snippet=_snippet(found, ranges)) for found, ranges in compared if ranges is not None]


def _snippet(found: Found, ranges: Sequence[Range]) -> Snippet:
    """Answers are Markdown; people's messages and titles are shown as they were written."""
    return make_snippet(found.text, ranges, is_markdown=found.role == "assistant")
