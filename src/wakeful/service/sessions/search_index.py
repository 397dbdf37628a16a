"""Builds the search index of what was written before an upgrade, in the background.

New messages and titles are indexed in the transaction that saves them.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from wakeful.clock import Clock
from wakeful.domain.sessions.search import IndexProgress
from wakeful.store.sessions.search import EarlierText, Indexed, rows_of
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)

_MAX_TEXTS = 200  # in one transaction
_MAX_CHARACTERS = 200_000  # in one transaction: it takes about 0.1 s
_MIN_REST_SECONDS = 0.01


class SearchIndex:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._is_complete = False

    async def progress(self) -> IndexProgress:
        if self._is_complete:
            return IndexProgress(is_complete=True, percent=100)
        progress = (await self._store.read(lambda tx: tx.search.indexed(), is_single=True)).progress
        self._is_complete = progress.is_complete
        return progress

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
        taken = _take(found)
        # Outside the transaction: others can write meanwhile.
        rows = await asyncio.to_thread(rows_of, taken, indexed.next_number)
        is_last = len(found) < _MAX_TEXTS and len(taken) == len(found)
        moved = _move(indexed, taken, len(rows), is_last=is_last)
        await self._store.write(
            lambda tx: tx.search.add_earlier(rows, moved, indexed.done), is_synced=False, is_repeatable=True
        )
        return True


async def _read(tx: Tx, indexed: Indexed) -> list[EarlierText]:
    if indexed.sessions_before is not None:
        return await tx.search.earlier_titles(indexed.sessions_before, _MAX_TEXTS)
    return await tx.search.earlier_messages(indexed.messages_before or "", _MAX_TEXTS)


def _take(found: Sequence[EarlierText]) -> Sequence[EarlierText]:
    """Take the texts that one transaction indexes: at least one."""
    characters = 0
    for count, each in enumerate(found):
        characters += len(each.text)
        if characters > _MAX_CHARACTERS:
            return found[: max(1, count)]
    return found


def _move(indexed: Indexed, taken: Sequence[EarlierText], added: int, *, is_last: bool) -> Indexed:
    """Return how far the index goes after these texts. Each step moves `done`, by which nodes notice each other."""
    before = None if is_last else taken[-1].id
    moved = replace(indexed, next_number=indexed.next_number - added, done=indexed.done + max(1, len(taken)))
    if indexed.sessions_before is not None:
        return replace(moved, sessions_before=before)
    return replace(moved, messages_before=before)
