"""Corrects wakes and pauses that a wrong clock has planned, after a start and after a step of the clock."""

import logging
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta

from wakeful.core.clock import STEP, Clock
from wakeful.core.types import Wake
from wakeful.store.base import Job
from wakeful.store.store import Store, Tx
from wakeful.timing import replan

log = logging.getLogger(__name__)

_BATCH = 200


class WrongClock:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._looked_at: float | None = None

    def jobs(self) -> Iterator[Job]:
        yield Job(name="wrong-clock", every=timedelta(minutes=1), run=self.correct)

    async def correct(self) -> list[Wake]:
        """Correct once after each step of the clock, and return the wakes that were planned again."""
        began = self._clock.monotonic()
        await self._clock.measure()
        if self._looked_at is not None and self._clock.seconds_since_step() > self._clock.monotonic() - self._looked_at:
            return []
        now = self._clock.now()
        await self._store.write(lambda tx: _correct_pauses(tx, now))
        planned: list[tuple[Wake, Wake]] = []
        found = await self._store.read(lambda tx: tx.wakes.planned_ahead(now + STEP))
        for start in range(0, len(found), _BATCH):
            ids = found[start : start + _BATCH]
            planned += await self._store.write(lambda tx, ids=ids: _correct_wakes(tx, ids, now))
        if planned:
            log.warning("wakes rescheduled that a wrong clock had planned", extra={"wakes": len(planned)})
            await self._store.write(lambda tx: _add_notices(tx, planned, now))
        self._looked_at = began
        return [after for _, after in planned]


async def _correct_pauses(tx: Tx, now: datetime) -> None:
    for pause in await tx.agents.pauses_made_after(now + replan.MUCH):
        await tx.agents.move_pause(replan.restart_pause(pause, now))


async def _correct_wakes(tx: Tx, wake_ids: list[str], now: datetime) -> list[tuple[Wake, Wake]]:
    planned: list[tuple[Wake, Wake]] = []
    for wake_id in wake_ids:
        before = await tx.wakes.get(wake_id)
        if before.status != "pending" or before.updated_at <= now:
            continue  # changed meanwhile
        after = replan.replan_after_wrong_clock(before, await tx.runs.planned_after(wake_id, now), now)
        is_moved = after.nominal_at != before.nominal_at
        await tx.wakes.move([(after, "rescheduled" if is_moved else None)])
        if is_moved:
            await tx.notices.record([replan.explain_wrong_clock(before, after, now)])
            planned.append((before, after))
    return planned


async def _add_notices(tx: Tx, planned: list[tuple[Wake, Wake]], now: datetime) -> None:
    of_user: defaultdict[str, list[tuple[Wake, Wake]]] = defaultdict(list)
    for before, after in planned:
        of_user[before.user_id].append((before, after))
    for theirs in of_user.values():
        await tx.notices.add(replan.wrong_clock_notice(theirs, now))
