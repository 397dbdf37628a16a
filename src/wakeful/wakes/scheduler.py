"""The scheduler loop: sleep until the next wake is due, then turn due wakes into runs."""

import asyncio
import logging
from datetime import datetime

from wakeful.core.clock import MAX_WAIT, Clock
from wakeful.core.errors import StoreBusy, StoreUnavailable, Unavailable
from wakeful.core.resources import shortage, words_of
from wakeful.runs.claims import Claims
from wakeful.runs.runner import Runner
from wakeful.runs.stopping import Stopping
from wakeful.wakes.firing import Firing

log = logging.getLogger(__name__)

_AFTER_TROUBLE = 1.0  # seconds
_WHILE_HELD = 0.25  # seconds


class Scheduler:
    """One loop per process. The decisions are those of `timing.fire_rule`, in one transaction per batch."""

    def __init__(
        self,
        firing: Firing,
        stopping: Stopping,
        runner: Runner,
        claims: Claims,
        clock: Clock,
        batch: int,
    ) -> None:
        self._firing = firing
        self._stopping = stopping
        self._clock = clock
        self._batch = batch
        # A lease that is taken after one look does not run out before the next, so that none is missed.
        self._longest_wait = min(claims.lease, MAX_WAIT)
        self._runner = runner
        self._claims = claims
        self._nudged = asyncio.Event()
        self._turned_at = clock.monotonic()

    @property
    def seconds_since_turn(self) -> float:
        """Return how long ago the loop last turned; it does so at least every half minute."""
        return self._clock.monotonic() - self._turned_at

    def nudge(self) -> None:
        """Look again now: something may be due earlier than was known."""
        self._nudged.set()

    async def run(self) -> None:
        """Turn until cancelled. A turn that fails is tried again; nothing is lost, for nothing was moved."""
        while True:
            try:
                until = await self.turn()
            except Unavailable as error:  # its message is enough, without a traceback each second
                if not isinstance(error, StoreUnavailable):  # which the store logs
                    log.warning("scheduler turn failed", extra={"problem": error.message})
                until = self._look_again_in(_AFTER_TROUBLE)
            except Exception:
                log.exception("scheduler turn failed")
                until = self._look_again_in(_AFTER_TROUBLE)
            await self._clock.wait(until, self._nudged)

    def _look_again_in(self, seconds: float) -> datetime:
        """Turn again after a pause in real time; return the time of the next turn without it."""
        asyncio.get_running_loop().call_later(seconds, self._nudged.set)
        return self._clock.now() + self._longest_wait

    async def turn(self) -> datetime:
        """Fire due wakes, recover lost runs, and return when to look next."""
        self._nudged.clear()  # first, so that news that comes during the turn is not lost
        looked_at = self._clock.now()
        moved = fired = await self.fire_batch()
        while fired == self._batch:
            self._runner.nudge()
            moved += (fired := await self.fire_batch())
        if self._runner.is_full:  # otherwise a run that has waited for long starts now, and did not wait for a slot
            await self._firing.shed_low()
        self._runner.nudge()
        await asyncio.sleep(0)  # lets the claim go first: a run waits for it
        next_moment = await self._firing.next_moment(since=looked_at)
        now = self._clock.now()
        if next_moment is not None and next_moment <= now:
            moved += await self._recover_lost()
            if not moved and next_moment <= looked_at:  # else it has become due since we looked
                next_moment = self._look_again_in(_WHILE_HELD)  # another node has it locked
        self._turned_at = self._clock.monotonic()
        latest = now + self._longest_wait
        return latest if next_moment is None else min(next_moment, latest)

    async def _recover_lost(self) -> int:
        """Carry out stop requests that had to wait, recover runs whose lease ran out, and return their number."""
        # A read before the write: claims would wait for the disk together with it.
        has_lost, has_stop_requests = await self._firing.find_recovery_work()
        moved = await self._stopping.carry_out_saved() if has_stop_requests else 0
        if has_lost and not self._claims.is_behind:
            moved += len(await self._firing.recover())
        if moved:
            self._runner.nudge()
        return moved

    async def fire_batch(self) -> int:
        """Decide about the wakes that are due, at most a batch of them, and return how many."""
        try:
            return await self._firing.fire_due()
        except StoreBusy:
            log.warning("wakes are fired one by one, since another node holds what one of them needs")
            return await self._fire_one_by_one()
        except Unavailable:
            raise
        except Exception:
            log.exception("a batch of wakes could not be fired together; trying them one by one")
            return await self._fire_one_by_one()

    async def _fire_one_by_one(self) -> int:
        """Fire wakes one by one, so that one that cannot be decided about does not hold up the others."""
        fired = held = 0
        while fired + held < self._batch:
            try:
                if not await self._firing.fire_due(most=1, skip=held):
                    return fired
            except StoreBusy:  # a locked row: this wake is retried with the next turn, the others now
                held += 1
                continue
            except Unavailable:
                raise  # no fault of the wake either
            except Exception as error:
                if (lacks := shortage(error)) is not None:
                    raise lacks from error
                wake_id = await self._firing.set_aside(words_of(error), skip=held)
                log.exception("wake set aside", extra={"wake_id": wake_id})
            fired += 1
        return fired
