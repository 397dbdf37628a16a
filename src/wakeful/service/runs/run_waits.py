"""Wait for the end of a run, on whichever node it is executed."""

import asyncio
from collections import defaultdict
from datetime import datetime

from wakeful.clock import Clock
from wakeful.domain.news import LookAgain, RunChanged
from wakeful.domain.types import Run
from wakeful.store.store import Store


class RunWaits:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)  # by run
        store.on(RunChanged, lambda news: self._look(news.run_id))
        store.on(LookAgain, lambda _: self._look_everywhere())

    def now(self) -> datetime:
        return self._clock.now()

    async def wait(self, run_id: str, user_id: str, until: datetime) -> Run:
        """Return a user's run when it has ended, or as it is at an instant. Giving up changes nothing about the run."""
        news = asyncio.Event()
        self._waiting[run_id].add(news)
        try:
            while True:
                news.clear()
                run = await self._store.read(lambda tx: tx.runs.read(run_id, user_id), is_single=True)
                if run.finished_at is not None or self._clock.now() >= until:
                    return run
                await self._clock.wait(until, news)
        finally:
            self._waiting[run_id].discard(news)
            if not self._waiting[run_id]:
                del self._waiting[run_id]

    def _look(self, run_id: str) -> None:
        for news in self._waiting.get(run_id, ()):
            news.set()

    def _look_everywhere(self) -> None:
        for run_id in self._waiting:
            self._look(run_id)
