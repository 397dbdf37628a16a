"""Gives space that deleted rows took back to the disk, in steps that no other write waits for."""

import asyncio
import logging

from wakeful.clock import Clock
from wakeful.store.drivers.sqlite import FreePages
from wakeful.store.store import Store

log = logging.getLogger(__name__)

STEP_PAGES = 200  # in one transaction: about 2 ms
_SLACK_BYTES = 16 * 1024 * 1024  # that stay free: new rows need them soon, and to grow a file takes time
_SLACK_SHARE = 0.1
_MIN_REST_SECONDS = 0.05


class Vacuum:
    """Cuts free pages off the embedded store's file. PostgreSQL does so by itself."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def run(self) -> int:
        """Free what is more than enough, and return the bytes. A kill between two steps leaves the rest for later."""
        freed = 0
        while (pages := await self._excess()) is not None:
            began = self._clock.monotonic()
            await self._store.cut_off(min(STEP_PAGES, pages.free))
            freed += min(STEP_PAGES, pages.free) * pages.page_bytes
            # Four parts of five belong to others.
            await asyncio.sleep(max(_MIN_REST_SECONDS, 4 * (self._clock.monotonic() - began)))
        if freed:
            log.info("store made smaller", extra={"bytes": freed})
        return freed

    async def _excess(self) -> FreePages | None:
        """Return the free pages beyond those that stay; None: there are none."""
        pages = await self._store.free_pages()
        if pages is None or not pages.can_cut:
            return None
        slack = max(_SLACK_BYTES, int(_SLACK_SHARE * pages.total * pages.page_bytes))
        excess = pages.free - slack // pages.page_bytes
        return pages._replace(free=excess) if excess > 0 else None
