"""Who holds a run: claims, leases, saved steps, finishes. Every write of an owner proves that it still is one."""

import logging
from collections.abc import Collection, Sequence
from datetime import timedelta

from wakeful.clock import Clock
from wakeful.domain.events import Frame, StepSaved
from wakeful.domain.rules import Rules
from wakeful.domain.runs import LeaseLost, Outcome
from wakeful.domain.types import Message, Run
from wakeful.service.endings import note_failure
from wakeful.store.database import SideConnection as HeartbeatConnection
from wakeful.store.rows import to_micros
from wakeful.store.runs import Claimed
from wakeful.store.store import Store, Tx
from wakeful.store.together import Together

__all__ = ["Claimed", "Claims", "HeartbeatConnection"]

log = logging.getLogger(__name__)

_MOST_USER_RUNS = 256  # of one claim; people are never held back by a number


class Claims:
    """The runs that one process holds."""

    def __init__(self, store: Store, clock: Clock, rules: Rules, owner: str, lease: timedelta) -> None:
        self._store = store
        self._clock = clock
        self._rules = rules
        self._owner = owner
        self._lease = lease
        self._finish_together = Together(self._finish_all)

    @property
    def lease(self) -> timedelta:
        return self._lease

    async def claim(self, headless: int) -> list[Claimed]:
        """Take every user's run whose session is free, and up to so many headless ones."""
        now = self._clock.now()

        async def work(tx: Tx) -> list[Claimed]:
            taken = await tx.runs.claim_user(self._owner, now, self._lease, _MOST_USER_RUNS)
            if headless > 0:
                taken += await tx.runs.claim_headless(self._owner, now, self._lease, headless)
            await tx.wakes.mark_running([each.run.wake_id for each in taken if each.run.wake_id is not None], now)
            return taken

        # A claim that the power takes away is only made again; what the run saves later makes it durable too.
        return await self._store.write(work, is_synced=False)

    async def saved_steps(self, run: Run) -> list[Message]:
        """Return what an earlier attempt at this run had saved."""
        return await self._store.read(lambda tx: tx.sessions.steps_of(run.id))

    async def save_step(self, run: Run, step: StepSaved, step_id: str) -> None:
        """Append a step to the transcript, or raise if the run is no longer ours. The same id is saved once."""
        now = self._clock.now()
        assert run.session_id is not None
        message = Message(
            id=step_id,
            session_id=run.session_id,
            position=0,
            role=step.role,
            content=step.content,
            created_at=now,
            run_id=run.id,
            wake_id=run.wake_id,
        )

        async def work(tx: Tx) -> None:
            if not await tx.runs.holds_lease(run, now):
                raise LeaseLost(run)
            await tx.sessions.append(message)
            if run.is_resuming:
                await tx.runs.leave_probation(run.id)

        await self._store.write(work)

    async def save_frames(self, run: Run, frames: Sequence[Frame]) -> int:
        """Save what those who watch are shown and return its sequence number, or raise if the run is no longer ours."""
        now = self._clock.now()
        session_id = run.session_id
        assert session_id is not None

        async def work(tx: Tx) -> int:
            if not await tx.runs.holds_lease(run, now):
                raise LeaseLost(run)
            return await tx.sessions.append_events(session_id, run.id, [frame.data for frame in frames], now)

        return await self._store.write(work)

    async def finish(self, run: Run, outcome: Outcome) -> bool:
        """Write how a run ended. False if it was no longer ours: then nothing was written."""
        return await self._finish_together((run, outcome))

    async def give_back_all_but(self, run_ids: Collection[str]) -> int:
        """Give back at once and untried whatever else the store says is ours."""

        async def work(tx: Tx) -> int:
            return await tx.runs.release([run for run in await tx.runs.held_by(self._owner) if run.id not in run_ids])

        return await self._store.write(work)

    async def stops(self) -> list[str]:
        """Return which of our runs someone asked to stop."""
        return await self._store.read(lambda tx: tx.runs.stops_of(self._owner))

    async def open_heartbeat(self) -> HeartbeatConnection:
        """Open the connection that renews the leases; it belongs to the thread that calls this."""
        return await self._store.side_connection()

    async def renew(self, connection: HeartbeatConnection) -> set[tuple[str, int]]:
        """Renew all our leases and return the runs that are still ours, each with its fence."""
        now = self._clock.now()
        rows = await connection.fetch(
            "renew_leases",
            {"owner": self._owner, "now": to_micros(now), "lease_until": to_micros(now + self._lease)},
        )
        return {(row["id"], row["fence"]) for row in rows}

    async def _finish_all(self, finished: Sequence[tuple[Run, Outcome]]) -> list[bool]:
        now = self._clock.now()

        async def work(tx: Tx) -> set[str]:
            ours = await tx.runs.finish(finished, now)
            settled = [
                (run.wake_id, "stopped" if outcome.status == "stopped" else outcome.reason)
                for run, outcome in finished
                if run.wake_id is not None and run.id in ours and outcome.status != "failed"
            ]
            await tx.wakes.settle(settled, now)
            for run, outcome in finished:
                if outcome.status == "failed" and run.id in ours:
                    await note_failure(tx, run, outcome.reason, outcome.error, now, self._rules)
            return ours

        ours = await self._store.write(work)
        for run, _ in finished:
            if run.id not in ours:
                log.warning("stale finish refused", extra={"run_id": run.id, "fence": run.fence})
        return [run.id in ours for run, _ in finished]
