"""Search in messages and titles of sessions."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from wakeful.core.clock import Clock
from wakeful.core.search import Found, IndexProgress, Query, Range, Snippet, make_snippet, parse_query
from wakeful.store.sessions import EarlierText, Indexed, rows_of
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)

MAX_TEXTS = 100  # in one transaction
MAX_CHARACTERS = 100_000  # in one transaction: it takes about 0.05 s
_MIN_REST_SECONDS = 0.01
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
    def __init__(self, store: Store, index: "SearchIndex") -> None:
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


# ── The index ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class SearchIndex:
    """Indexes what was written before an upgrade, in the background.

    New messages and titles are indexed in the transaction that saves them.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def progress(self) -> IndexProgress:
        return (await self._store.read(lambda tx: tx.search.indexed(), is_single=True)).progress

    async def build(self) -> None:
        """Index everything that is not indexed yet, resting after each step as long as it took."""
        if (await self.progress()).is_complete:
            return
        log.info("building the search index")
        while True:
            began = self._clock.monotonic()
            if not await self.build_some():
                break
            await asyncio.sleep(max(_MIN_REST_SECONDS, self._clock.monotonic() - began))
        log.info("search index built")

    async def build_some(self) -> bool:
        """Index the next texts, and return whether there may be more; another node may have been first."""
        indexed = await self._store.read(lambda tx: tx.search.indexed(), is_single=True)
        if indexed.progress.is_complete:
            return False
        found = await self._store.read(lambda tx: _read(tx, indexed), is_single=True)
        taken = _fitting(found)
        # Outside the transaction: others can write meanwhile.
        rows = await asyncio.to_thread(rows_of, taken, indexed.next_number)
        is_last = len(found) < MAX_TEXTS and len(taken) == len(found)
        moved = _move(indexed, taken, len(rows), is_last=is_last)
        await self._store.write(
            lambda tx: tx.search.add_earlier(rows, moved, indexed.done), is_synced=False, is_repeatable=True
        )
        return True


async def _read(tx: Tx, indexed: Indexed) -> list[EarlierText]:
    if indexed.sessions_before is not None:
        return await tx.search.earlier_titles(indexed.sessions_before, MAX_TEXTS)
    return await tx.search.earlier_messages(indexed.messages_before or "", MAX_TEXTS)


def _fitting(found: Sequence[EarlierText]) -> Sequence[EarlierText]:
    """Return the texts that one transaction indexes: at least one."""
    characters = 0
    for count, each in enumerate(found):
        characters += len(each.text)
        if characters > MAX_CHARACTERS:
            return found[: max(1, count)]
    return found


def _move(indexed: Indexed, taken: Sequence[EarlierText], added: int, *, is_last: bool) -> Indexed:
    """Return how far the index goes after these texts. Each step moves `done`, by which nodes notice each other."""
    before = None if is_last else taken[-1].id
    moved = replace(indexed, next_number=indexed.next_number - added, done=indexed.done + max(1, len(taken)))
    if indexed.sessions_before is not None:
        return replace(moved, sessions_before=before)
    return replace(moved, messages_before=before)
