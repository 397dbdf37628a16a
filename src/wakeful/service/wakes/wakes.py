"""Book, edit, skip, cancel, run now and explain wakes."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from wakeful.clock import Clock
from wakeful.domain.bounds.limits import Rules
from wakeful.domain.doors.next_run import SelfSchedulingOff
from wakeful.domain.errors import WakefulError
from wakeful.domain.inbox import notices
from wakeful.domain.types import Decision, Run, ScheduledBy, Wake
from wakeful.domain.wakes import edits, explain
from wakeful.domain.wakes.create import RequestedTime, SlotTaken, TooManySchedules, booking_detail
from wakeful.service.agents.directories import Directories
from wakeful.store.drivers.batching import Together
from wakeful.store.store import Store, Tx


class WakeService:
    """Book, edit, skip, cancel, run now, explain."""

    def __init__(self, store: Store, clock: Clock, rules: Rules, directories: Directories) -> None:
        self._store = store
        self._directories = directories
        self._clock = clock
        self._rules = rules
        # Beside a batch that the database server is at work on, the next one can be put together.
        at_once = 2 if store.is_shared else 1
        self._add_together = Together(self._add_all, at_once=at_once, key=_session_or_own)

    async def book(self, wake: Wake) -> Wake:
        """Book a wake. It is durable when this returns.

        A recall's slot must be free; a next run takes its slot from the one before; schedules are counted.
        """
        if wake.kind == "next_run":
            return await self._replace_in_slot(wake)
        refusal = await self._add_together(wake)
        if refusal is not None:
            raise refusal
        return wake

    async def find(
        self,
        user_id: str,
        *,
        agent_id: str | None = None,
        status: str | None = None,
        is_live: bool = False,
        after: tuple[datetime, str] | None = None,
        most: int = 50,
    ) -> list[Wake]:
        """Return a page of a user's wakes, the soonest first."""
        return await self._store.read(
            lambda tx: tx.wakes.of_user(
                user_id, agent_id=agent_id, status=status, is_live=is_live, after=after, most=most
            )
        )

    async def get(self, wake_id: str, user_id: str) -> Wake:
        return await self._store.read(lambda tx: tx.wakes.read(wake_id, user_id))

    async def last_runs(self, wakes_listed: Sequence[Wake]) -> dict[str, Run]:
        """Return the latest run of each wake that has ended, by the wake's id."""
        return await self._store.read(lambda tx: tx.runs.last_of_wakes([wake.id for wake in wakes_listed]))

    async def of_session(self, session_id: str, most: int = 50) -> list[Wake]:
        return await self._store.read(lambda tx: tx.wakes.of_session(session_id, most))

    async def edit(
        self, wake_id: str, user_id: str, changes: Mapping[str, Any], asked_time: RequestedTime | None = None
    ) -> Wake:
        """Change a pending wake; the requested time is saved with the change, for `why`."""
        now = self._clock.now()

        async def work(tx: Tx) -> Wake:
            return await edit(tx, await tx.wakes.get(wake_id, user_id), changes, asked_time, now, self._rules)

        return await self._store.write(work)

    async def cancel(self, wake_id: str, user_id: str, reason: str | None = None) -> Wake:
        """End a live wake and the runs of it that have not begun."""
        now = self._clock.now()

        async def work(tx: Tx) -> Wake:
            before = await tx.wakes.get(wake_id, user_id)
            after = edits.cancel(before, reason, now)
            await tx.runs.end_queued_of_wake(wake_id, "skipped", "cancelled", now)
            await tx.wakes.move([(after, "cancelled")])
            await tx.notices.record([edits.say_cancelled(before, reason, now)])
            return after

        return await self._store.write(work)

    async def mute(self, wake_id: str, user_id: str, muted: bool) -> Wake:
        """Send a wake's notices to the inbox alone, or to the channels again."""
        now = self._clock.now()

        async def work(tx: Tx) -> Wake:
            await tx.wakes.get(wake_id, user_id)
            return await tx.wakes.mute(wake_id, muted, now)

        return await self._store.write(work)

    async def forget(self, wake_id: str, before: datetime, days: int) -> None:
        """End a recurring recall that no person has touched since, with a notice."""
        now = self._clock.now()

        async def work(tx: Tx) -> None:
            wake = await tx.wakes.get(wake_id)
            if wake_id not in await tx.wakes.forgotten_recalls(before, wake_id=wake_id):
                return  # another node was here first, or its user came back
            after = edits.cancel(wake, "forgotten", now)
            await tx.runs.end_queued_of_wake(wake_id, "skipped", "forgotten", now)
            await tx.wakes.move([(after, "cancelled")])
            await tx.notices.record([edits.say_cancelled(wake, "forgotten", now)])
            await tx.notices.add(notices.forgotten(wake, days, now))

        await self._store.write(work)

    async def skip(self, wake_id: str, user_id: str, *, by: ScheduledBy = "user") -> Wake:
        """Leave out the next occurrence of a recurring wake."""
        now = self._clock.now()

        async def work(tx: Tx) -> Wake:
            before = await tx.wakes.get(wake_id, user_id)
            verdict = edits.skip(before, now)
            await tx.wakes.move([(verdict.wake, verdict.action)])
            await tx.runs.add(verdict.runs)
            if by == "user":
                await tx.wakes.see(wake_id, now)
            return verdict.wake

        return await self._store.write(work)

    async def run_now(self, wake_id: str, user_id: str) -> Run:
        """Run a pending wake at once, paused or not: a once-wake is used up by it, a recurring one keeps its times."""
        now = self._clock.now()

        async def work(tx: Tx) -> Run:
            wake = await tx.wakes.get(wake_id, user_id)
            await self._directories.check_reachable(tx, wake.agent_id)
            await tx.wakes.see(wake_id, now)
            if wake.status == "queued":  # its run is there already, and waits for a slot, its session or a pause
                return (await tx.runs.hurry(wake_id))[0]
            verdict = edits.run_now(wake, now)
            await tx.wakes.move([(verdict.wake, verdict.action)])
            await tx.sessions.add(verdict.sessions)
            await tx.runs.add(verdict.runs)
            return verdict.runs[0]

        return await self._store.write(work)

    async def why(self, wake_id: str, user_id: str) -> list[Decision]:
        """Explain a wake: what was decided about each occurrence, when, and for which reason."""

        async def work(tx: Tx) -> tuple[Wake, Sequence[Decision], Sequence[Run]]:
            wake = await tx.wakes.read(wake_id, user_id)
            return wake, await tx.notices.decisions_of(wake_id), await tx.runs.of_wake(wake_id)

        return explain.explain(*await self._store.read(work))

    async def _add_all(self, batch: Sequence[Wake]) -> list[WakefulError | None]:
        added = await self._store.add_wakes(batch)
        return [None if wake.id in added else await self._refusal(wake) for wake in batch]

    async def _refusal(self, wake: Wake) -> WakefulError:
        agent = await self._store.read(lambda tx: tx.agents.get(wake.agent_id, wake.user_id))
        if wake.scheduled_by == "agent" and not agent.self_scheduling:
            return SelfSchedulingOff(agent)
        if wake.slot is None:
            return TooManySchedules()
        slot = wake.slot
        return SlotTaken(await self._store.write(lambda tx: tx.wakes.live_in_slot(slot)) or wake)

    async def _replace_in_slot(self, wake: Wake) -> Wake:
        now = self._clock.now()

        # On another node someone may take the free slot between our look and our insert; then that one is replaced.
        while not await self._store.write(lambda tx: put_in_slot(tx, wake, now), is_repeatable=True):
            continue
        return wake


async def edit(
    tx: Tx, before: Wake, changes: Mapping[str, Any], asked_time: RequestedTime | None, now: datetime, rules: Rules
) -> Wake:
    """Change a pending wake that this transaction has locked, and record the change."""
    after = edits.edit(before, changes, now, rules)
    await tx.wakes.edit(after)
    told = {} if asked_time is None else booking_detail(asked_time, changes["nominal_at"], after.nominal_at, after.cron)
    await tx.notices.record([_said(before, "edited", now, changed=sorted(changes), **told)])
    return after


async def put_in_slot(tx: Tx, wake: Wake, now: datetime) -> bool:
    """Book a wake in place of the one that holds its slot. False if someone took the slot meanwhile: try again."""
    assert wake.slot is not None
    before = await tx.wakes.live_in_slot(wake.slot)
    if before is not None and before.id == wake.id:
        return True  # put there by a try whose answer got lost
    if before is not None:
        await tx.runs.end_queued_of_wake(before.id, "skipped", "superseded", now)
        await tx.wakes.move([(edits.supersede(before, now), "cancelled")])
        await tx.notices.record([_said(before, "superseded", now, by=wake.id)])
    return bool(await tx.wakes.add([wake]))


def _said(wake: Wake, code: str, now: datetime, **detail: Any) -> Decision:
    return Decision(wake_id=wake.id, nominal_at=wake.nominal_at, at=now, code=code, detail=detail)


def _session_or_own(wake: Wake) -> str:
    """Return what books one wake after the other: the schedules of a session are counted before one is added."""
    return wake.session_id or wake.id
