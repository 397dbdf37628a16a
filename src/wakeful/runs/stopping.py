"""Requests to stop a run, and the end of the wakes of deleted agents and users.

A request is saved in the run's row or, while a node that does not answer holds that, in another table.
"""

import asyncio
import logging
from datetime import datetime

from wakeful.core.clock import Clock
from wakeful.core.events import StreamStopped
from wakeful.core.types import FOREVER, Rules, Run, Wake
from wakeful.runs.claims import end_wake
from wakeful.sessions.presence import hold_wakes
from wakeful.store.store import Store, Tx
from wakeful.store.wakes import Gone
from wakeful.timing import lifecycle

_BATCH = 64


class Stopping:
    def __init__(self, store: Store, clock: Clock, rules: Rules) -> None:
        self._store = store
        self._clock = clock
        self._rules = rules

    async def stop(self, run_id: str, user_id: str) -> Run:
        """End a queued run, ask a running one to stop, and return it as it was before."""
        now = self._clock.now()

        async def work(tx: Tx) -> Run:
            run = await tx.runs.get(run_id, user_id)
            await self._stop(tx, run, now)
            return run

        return await self._store.write(work)

    async def request_later(self, run_id: str, user_id: str) -> Run:
        """Save a request to stop a run without waiting for its row, and return the run."""
        now = self._clock.now()

        async def work(tx: Tx) -> Run:
            run = await tx.runs.read(run_id, user_id)
            if run.status in ("queued", "running"):
                await tx.runs.save_stop_request(run_id, now)
            return run

        return await self._store.write(work)

    async def carry_out_saved(self) -> int:
        """Carry out saved requests for runs that no node holds any more; return how many."""
        now = self._clock.now()

        async def work(tx: Tx) -> int:
            free = await tx.runs.free_stop_requests(_BATCH)
            for run in free:
                await self._stop(tx, run, now)
                await tx.runs.delete_stop_request(run.id)
            return len(free)

        return await self._store.write(work)

    async def _stop(self, tx: Tx, run: Run, now: datetime) -> None:
        if run.status == "queued":
            await tx.runs.end_queued(run.id, "stopped", "stopped", now)
            await end_wake(tx, run, "fired", "stopped", now)
            # Ends the wait of a client for this run's answer. Not for a headless run that never began: another run may
            # be streaming, and this would look like its end.
            if run.session_id is not None and (not run.is_headless or run.fence > 0):
                tx.say(run.session_id, [StreamStopped()], now, run_id=run.id)
                await hold_wakes(tx, [run], now, self._rules)
        if run.status == "running":
            await tx.runs.request_stop(run.id, now)  # the first request counts; a second changes nothing


# Cancel the wakes of deleted agents and users: a page per transaction, since there may be a million.


log = logging.getLogger(__name__)

_PAGE = 1_000
_LOG_EVERY = 50_000


class Departures:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.left = asyncio.Event()  # there may be wakes to cancel

    async def begin(self, tx: Tx, gone: Gone, now: datetime) -> int:
        """Stop the runs of an agent or user that was just deleted, and cancel wakes; return how many are left.

        What is left does not fire. Set `left` after the commit, so that the engine cancels it.
        """
        page = await _end_page(tx, gone, now)
        for status in ("queued", "running"):
            for run in await tx.runs.of_user(gone.user_id, agent_id=gone.agent_id, status=status, most=_PAGE):
                await tx.runs.end_queued(run.id, "stopped", gone.reason, now)
                await tx.runs.request_stop(run.id, now)
        return await tx.wakes.count_live(gone.user_id, gone.agent_id, FOREVER) if page else 0

    async def finish(self) -> None:
        """Cancel the wakes that deleted agents and users have left, also those from before a restart."""
        while left := await self._store.read(lambda tx: tx.wakes.left_by_gone()):
            for gone in left:
                await self._end_all(gone)

    async def _end_all(self, gone: Gone) -> None:
        after, seen = None, 0
        while page := await self._store.write(lambda tx, after=after: _end_page(tx, gone, self._clock.now(), after)):
            after, seen = (page[-1].nominal_at, page[-1].id), seen + len(page)
            if len(page) < _PAGE or seen % _LOG_EVERY == 0:
                fields = {"user_id": gone.user_id, "agent_id": gone.agent_id, "wakes": seen}
                log.info("wakes cancelled after a deletion", extra=fields)


async def _end_page(tx: Tx, gone: Gone, now: datetime, after: tuple[datetime, str] | None = None) -> list[Wake]:
    """Cancel a page of live wakes and return it. Another node may have fired one since; then that one is left."""
    page = await tx.wakes.of_user(gone.user_id, agent_id=gone.agent_id, is_live=True, after=after, most=_PAGE)
    await tx.runs.end_queued_of_wakes([wake.id for wake in page], "skipped", gone.reason, now)
    ended = [lifecycle.cancel(wake, gone.reason, now) for wake in page]
    moved = await tx.wakes.move([(wake, "cancelled") for wake in ended])
    await tx.notices.record([lifecycle.explain_cancelled(wake, gone.reason, now) for wake in ended if wake.id in moved])
    return page
