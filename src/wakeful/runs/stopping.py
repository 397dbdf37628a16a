"""Requests to stop a run: saved in its row or, while a node that does not answer holds that, in another table."""

from datetime import datetime

from wakeful.core.clock import Clock
from wakeful.core.events import StreamStopped
from wakeful.core.types import Rules, Run
from wakeful.runs.claims import end_wake
from wakeful.sessions.presence import hold_wakes
from wakeful.store.store import Store, Tx

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
