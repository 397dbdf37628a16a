"""The runner loop: claims queued runs, executes them, finishes them."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

from wakeful.core import ids
from wakeful.core.clock import MAX_WAIT, Clock
from wakeful.core.errors import StoreUnavailable, Unavailable, WakefulError
from wakeful.core.events import EndedEarly, RunFrame, StepSaved, StreamEnd
from wakeful.core.records import Outcome
from wakeful.core.types import ClaimedRun, RunNote
from wakeful.core.values import replace
from wakeful.runs.claims import Claims
from wakeful.runs.end_log import EndLog
from wakeful.runs.executor import Executor
from wakeful.runs.frame_writer import FrameWriter
from wakeful.runs.held_run import GoesOn, HeldRun, end_of_work
from wakeful.store.errors import PAUSE, insist
from wakeful.store.runs import Claimed
from wakeful.telemetry.logs import enter_run
from wakeful.telemetry.tracing import Tracing, note_end

log = logging.getLogger(__name__)

_LOOK_FOR_STOPS = timedelta(seconds=1)  # in case the news got lost
_DRAIN_PATIENCE = 5.0
_DRAIN_TRIES = 3
_SECOND_LOOK = 0.25  # seconds
_SHORTAGE_PAUSE = 1.0
_MAX_SHORTAGE_PAUSE = 30.0


class Runner:
    """Executes claimed runs: a limited number of headless ones at a time, and all that a person waits for."""

    def __init__(
        self,
        claims: Claims,
        clock: Clock,
        executor: Executor,
        max_headless: int,
        on_finished: Callable[[ClaimedRun, Outcome], None] = lambda _run, _outcome: None,
        on_lost: Callable[[], None] = lambda: None,
        tracing: Tracing | None = None,
    ) -> None:
        self.tracing = tracing or Tracing()
        self.claims = claims
        self._on_lost = on_lost
        self._on_finished = on_finished
        self._clock = clock
        self.executor = executor
        self._max_headless = max_headless
        self._held: dict[str, HeldRun] = {}
        self._nudged = asyncio.Event()
        self._look_for_stops = False
        self._stops_seen_at = 0.0
        self._is_draining = False
        self._has_news = False
        self._second_look: asyncio.TimerHandle | None = None
        self._claiming: asyncio.Task[list[Claimed]] | None = None
        self._may_have_strays = False  # runs that are ours in the store, but not held here
        self._unheld: set[tuple[str, int]] = set()  # ours by the last heartbeat, but not held here
        self.shortage: str | None = None  # what this process lacks; it claims nothing for a while
        self._shortages = 0  # since a run last ended
        self._end_log = EndLog()
        self._turned_at = clock.monotonic()

    @property
    def seconds_since_turn(self) -> float:
        """Return how long ago the loop last turned; it does so at least every half minute."""
        return self._clock.monotonic() - self._turned_at

    @property
    def active(self) -> int:
        """Return how many runs are running here."""
        return len(self._held)

    @property
    def is_full(self) -> bool:
        """Whether every slot for headless runs is taken."""
        return self._free_slots() <= 0

    def nudge(self) -> None:
        """Look at the queue now."""
        self._has_news = True
        self._nudged.set()

    def look_for_stops(self) -> None:
        """Look for requests to stop; one may be for a run of ours."""
        self._look_for_stops = True
        self._nudged.set()

    async def run(self) -> None:
        """Claim and carry out until cancelled."""
        while True:
            try:
                await self.turn()
            except Exception as error:
                if not isinstance(error, Unavailable):
                    log.exception("runner turn failed")
                elif not isinstance(error, StoreUnavailable):  # which the store logs
                    log.warning("runner turn failed", extra={"problem": error.message})
                await asyncio.sleep(PAUSE)
                self._nudged.set()  # what we were nudged for is still to be done
            longest = _LOOK_FOR_STOPS if self._held else MAX_WAIT
            await self._clock.wait(self._clock.now() + longest, self._nudged)

    async def turn(self) -> None:
        """Pass on requests to stop, then fill the free slots from the queue."""
        self._nudged.clear()
        has_news, self._has_news = self._has_news, False
        await self._pass_on_stops()
        if self._is_draining or self.shortage is None:
            await self._release_strays()
        if not self._is_draining and self.shortage is None:
            await self._claim(has_news=has_news)
        self._turned_at = self._clock.monotonic()

    async def _claim(self, *, has_news: bool) -> None:
        self._may_have_strays = True  # until it is known what was claimed: the answer may be lost on the way
        self._claiming = asyncio.create_task(self.claims.claim(self._free_slots()))
        claims = await asyncio.shield(self._claiming)  # cancelled, the store might still carry it out: see `drain`
        if self._is_draining:
            return  # begun in between: `drain` waits for the claim, and releases it
        self._may_have_strays = False
        for claimed in claims:
            self._start(claimed)
        # A claim skips runs whose row or wake another transaction holds just then, and there is no news of its end.
        if has_news and self.claims.passes_by and self._second_look is None:
            self._second_look = asyncio.get_running_loop().call_later(_SECOND_LOOK, self._look_once_more)

    async def _release_strays(self) -> None:
        if self._may_have_strays:
            await self.claims.release_all_but({held.claim for held in self._held.values()})
            self._may_have_strays = False

    def _look_once_more(self) -> None:
        self._second_look = None
        self._nudged.set()

    async def idle(self) -> None:
        """Wait until nothing is running here."""
        while self._held:
            await asyncio.gather(*[held.task for held in self._held.values() if held.task is not None])

    async def drain(self) -> None:
        """Stop claiming runs, and release those that are not finished."""
        self._is_draining = True
        tasks: list[asyncio.Task[object]] = [held.task for held in self._held.values() if held.task is not None]
        for held in self._held.values():
            held.cut_off("released")
        if self._claiming is not None:
            tasks.append(self._claiming)
        if tasks:
            await asyncio.wait(tasks, timeout=_DRAIN_PATIENCE)
        self._end_log.write()
        # Rows that a run was saving when it was cancelled may be locked for a moment more.
        for tries_left in reversed(range(_DRAIN_TRIES)):
            try:
                finishing = {held.claim for held in self._held.values() if held.phase == "finishing"}
                await self.claims.release_all_but(finishing)
            except Unavailable as error:
                if tries_left:
                    await asyncio.sleep(PAUSE)
                    continue
                self._may_have_strays = True
                log.warning(
                    "store away, so unfinished runs wait for their leases to run out", extra={"problem": error.message}
                )
            return

    def undrain(self) -> None:
        """Claim runs again."""
        self._is_draining = False
        self.nudge()

    def compare(self, began: float, ours: set[tuple[str, int]]) -> None:
        """Compare the runs that execute here with those that the heartbeat, begun at that moment, found to be ours.

        Work on a run that is not ours is stopped. A run that is ours but not running would stay ours for ever: a lease
        that had run out, so that its run was dropped here, is renewed by a slow heartbeat. Such a run is released.
        """
        for held in list(self._held.values()):
            is_ours = held.claim in ours or held.claimed_at >= began
            if not is_ours and held.cut_off("lost"):
                self._report_lost(held)
        unheld = ours - {held.claim for held in self._held.values()}
        strays = unheld & self._unheld  # else it has only just been claimed, or has just ended
        self._unheld = unheld
        if strays:
            log.warning(
                "runs that this process no longer holds are released", extra={"run_ids": [each for each, _ in strays]}
            )
            self._may_have_strays = True
            self._nudged.set()

    def _free_slots(self) -> int:
        at_work = sum(held.run.is_headless and held.phase != "finishing" for held in self._held.values())
        return self._max_headless - at_work

    def _start(self, claimed: Claimed) -> None:
        stale = self._held.get(claimed.run.id)
        if stale is not None:  # we lost the lease unnoticed, as after a suspend, and claimed the run again
            stale.cut_off("lost")
        held = HeldRun(run=claimed.run, limit=claimed.limit, frame_writer=FrameWriter(partial(self._save, claimed.run)))
        self._held[claimed.run.id] = held
        carry_out = self._trace if self.tracing.is_on else self._carry_out
        held.task = asyncio.create_task(carry_out(held), name=f"run-{claimed.run.id}")
        if claimed.run.stop_requested_at is not None:  # made to an owner that died
            held.ask_to_stop()

    async def _trace(self, held: HeldRun) -> None:
        with self.tracing.attempt(held.run) as held.span:
            await self._carry_out(held)

    async def _carry_out(self, held: HeldRun) -> None:
        """Execute a run, and write its end or give it back."""
        enter_run(held.run, held.span.trace_id)
        try:
            end = await self._execute(held)
            if isinstance(end, GoesOn):
                end = await self._give_back(held, end)
            if self.tracing.is_on:
                note_end(held.span, end, held.usage, is_lost=held.phase == "lost")
            if end is not None:
                await self._finish(held, end)
        finally:
            if self._held.get(held.run.id) is held:  # else a newer claim of ours has its place
                del self._held[held.run.id]
            self.nudge()

    async def _execute(self, held: HeldRun) -> Outcome | GoesOn:
        note: RunNote | None = None
        raised: Exception | asyncio.CancelledError | None = None
        # A bare timer: asyncio.timeout costs several times as much, and every run has one.
        limit = asyncio.get_running_loop().call_later(held.limit.total_seconds(), held.cut_off, "over_limit")
        try:
            async with held.frame_writer:
                note = await self._follow(held)
        except asyncio.CancelledError as error:
            raised = error
        except Exception as error:  # noqa: BLE001  (decided about below: the run fails, the server goes on)
            raised = error
        finally:
            limit.cancel()
        end = end_of_work(held, note, raised, is_store_away=self.claims.is_store_away)
        if isinstance(end, Outcome) and end.status == "failed" and isinstance(raised, Exception):
            _log_failure(held, end, raised)
        return end

    async def _follow(self, held: HeldRun) -> RunNote | None:
        """Save and publish the executor's events until it ends, and return why it ended early, if it did."""
        run = held.run
        reason: RunNote | None = None
        # Every claim raises the fence, so an earlier attempt may have left steps.
        steps = await insist(lambda: self.claims.saved_steps(run), Unavailable) if run.fence > 1 else []
        before_call = partial(self._record_call, held)
        async with contextlib.aclosing(self.executor.execute(run, steps, held.stop, before_call)) as events:
            async for event in events:
                match event:
                    case StepSaved(is_last=True):
                        held.usage = event.usage or held.usage
                        held.last_step = event
                        held.enter("finishing")
                    case StepSaved():
                        held.usage = event.usage or held.usage
                        await held.frame_writer.save(event)
                    case EndedEarly():
                        reason = event.reason
                    case StreamEnd():  # published with the finishing commit, not before
                        held.last_frame = event
                    case _:
                        await held.frame_writer.say(event)
        return reason

    async def _finish(self, held: HeldRun, outcome: Outcome) -> None:
        held.enter("finishing")
        self._nudged.set()  # its slot is free while its end is written: the next claim need not wait for that
        frame, unsaved = held.closing_frame(outcome), held.frame_writer.pop_unsaved()
        finish = partial(self.claims.finish, last_step=held.last_step, unsaved=unsaved)
        if await insist(lambda: finish(held.run, outcome, frame), Unavailable):
            self._end_log.add(held, outcome)
            self._on_finished(held.run, outcome)
        self._shortages = 0

    async def _give_back(self, held: HeldRun, end: GoesOn) -> Outcome | None:
        """Have a run go on later; not counted as an attempt. Returns the end of one that cannot."""
        run_id = held.run.id
        match end.why:
            case "gone":
                return None
            case "lost":
                self._report_lost(held)
                held.enter("lost")
                return None
            case "store_away":
                log.warning("run released: store unavailable", extra={"run_id": run_id})
                await asyncio.sleep(PAUSE)
                self._may_have_strays = True  # released with the next turn
            case "shortage":
                await self._put_off(held, end)
            case "outage":
                if not await insist(partial(self.claims.hold, held.run, end.problem), Unavailable):
                    return Outcome(status="failed", reason=end.code, error=end.problem)
                log.warning("run held: the model does not answer", extra={"run_id": run_id})
        held.enter("released")
        return None

    async def _put_off(self, held: HeldRun, end: GoesOn) -> None:
        """Release a run that met a shortage, and claim nothing for a while: other runs would meet it too.

        Each time twice as long as the last, until a run ends again.
        """
        pause = min(_SHORTAGE_PAUSE * 2**self._shortages, _MAX_SHORTAGE_PAUSE)
        if self.shortage is None:
            self._shortages += 1
            log.warning("runs are put off", extra={"code": end.code, "problem": end.problem, "seconds": pause})
            asyncio.get_running_loop().call_later(pause, self._end_shortage)
        self.shortage = end.problem
        try:
            await self.claims.put_off(held.run, end.code)
        except Unavailable:
            self._may_have_strays = True  # released with the next turn

    def _end_shortage(self) -> None:
        self.shortage = None
        self._nudged.set()

    def _report_lost(self, held: HeldRun) -> None:
        log.warning("lease lost", extra={"run_id": held.run.id, "fence": held.run.fence})
        self._on_lost()

    async def _record_call(self, held: HeldRun) -> None:
        if not held.has_called:
            traceparent = held.span.traceparent
            run = held.run if traceparent is None else replace(held.run, traceparent=traceparent)
            await insist(lambda: self.claims.record_call(run), Unavailable)
            held.has_called = True

    async def _save(self, run: ClaimedRun, step: StepSaved | None, frames: Sequence[RunFrame]) -> None:
        writing_id = ids.new_id(self._clock.now())  # one for all retries: the first try may have been committed
        await insist(lambda: self.claims.save(run, step, frames, writing_id), Unavailable)

    async def _pass_on_stops(self) -> None:
        now = time.monotonic()
        is_time = now - self._stops_seen_at >= _LOOK_FOR_STOPS.total_seconds()
        if not self._held or not (self._look_for_stops or is_time):
            return
        self._look_for_stops, self._stops_seen_at = False, now
        for run_id in await self.claims.stops():
            held = self._held.get(run_id)
            if held is not None:
                held.ask_to_stop()


def _log_failure(held: HeldRun, outcome: Outcome, error: Exception) -> None:
    extra = {"run_id": held.run.id}
    if isinstance(error, WakefulError):  # its message is enough, without a traceback
        log.warning("run failed", extra=extra | {"code": outcome.reason, "error": outcome.error})
    else:
        log.warning("run failed", exc_info=error, extra=extra)
