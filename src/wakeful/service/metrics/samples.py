"""Figures that are read from the store for a scrape, which never waits for the store."""

import asyncio

from wakeful.clock import Clock
from wakeful.domain.errors import Unavailable
from wakeful.domain.types import WaitingWork
from wakeful.store.store import Store

_WAIT = 0.02  # seconds that a scrape waits for fresh figures; with the rest of it, 50 ms at most


class Samples:
    """The last figures of the store. One read at a time, whatever the number of scrapes."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._reading: asyncio.Task[None] | None = None
        self.last: WaitingWork | None = None  # None: nothing was read yet
        self.read_at = 0.0  # seconds since 1970

    async def refresh(self) -> None:
        """Read the figures, or leave the last ones if the store takes longer than a moment."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        await asyncio.wait([self._reading], timeout=_WAIT)

    async def aclose(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        try:
            self.last = await self._store.read(lambda tx: tx.runs.waiting_work(), is_single=True)
        except Unavailable:  # the store logs it; `wakeful_store_available` says it
            return
        self.read_at = self._clock.now().timestamp()
