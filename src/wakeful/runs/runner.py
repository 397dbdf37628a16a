"""The runner loop: claims queued runs, executes them, finishes them."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Literal

from wakeful.core import ids
from wakeful.core.clock import MAX_WAIT, Clock
from wakeful.core.errors import StoreUnavailable, Unavailable, WakefulError
from wakeful.core.events import EndedEarly, ErrorFrame, RunFrame, StepSaved, StreamEnd, StreamStopped
from wakeful.core.records import Outcome
from wakeful.core.resources import shortage, words_of
from wakeful.core.types import ClaimedRun, RunNote, RunUsage
from wakeful.core.values import replace
from wakeful.runs.claims import Claims
from wakeful.runs.executor import Executor, Stop
from wakeful.runs.frame_writer import FrameWriter
from wakeful.runs.rules import OUTAGES, LeaseLost
from wakeful.store.errors import PAUSE, insist
from wakeful.store.runs import Claimed
from wakeful.telemetry.log_fields import enter_run, log_each
from wakeful.telemetry.tracing import OFF, Span, Tracing, note_end

log = logging.getLogger(__name__)

_LOOK_FOR_STOPS = timedelta(seconds=1)  # in case the news got lost
STOP_PATIENCE = 1.5  # seconds an executor has to end by itself
_DRAIN_PATIENCE = 5.0
_DRAIN_TRIES = 3
_SECOND_LOOK = 0.25  # seconds
_LOG_TOGETHER = 0.05  # seconds in which ends of runs are collected: a record for each would cost a tenth of the fires
_SHORTAGE_PAUSE = 1.0
_MAX_SHORTAGE_PAUSE = 30.0


@dataclass(slots=True, eq=False)
class _Held:
    """A run that this process executes."""

    run: ClaimedRun
    limit: timedelta
    frame_writer: FrameWriter
    stop: Stop = field(default_factory=Stop)
    claimed_at: float = field(default_factory=time.monotonic)
    given_up: Literal["lost", "released"] | None = None  # no longer ours, so not finished here
    is_over_limit: bool = False
    has_called: bool = False  # a model or a tool
    is_finishing: bool = False  # its work is done: it must not be cancelled before its end is written
    last_step: StepSaved | None = None  # saved with its end
    end: StreamEnd | None = None  # its last frame if it succeeds
    usage: RunUsage | None = None  # as of its last step
    span: Span = OFF
    task: "asyncio.Task[None] | None" = None

    @property
    def claim(self) -> tuple[str, int]:
        """Return the identity of the claim: a later one of the same run has another fence."""
        return self.run.id, self.run.fence

    def give_up(self, why: Literal["lost", "released"]) -> None:
        self.given_up = why
        if self.task is not None:
            self.task.cancel()

    def end_at_limit(self) -> None:
        if self.is_finishing:
            return
        self.is_over_limit = True
        if self.task is not None:
            self.task.cancel()


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
        self._held: dict[str, _Held] = {}
        self._nudged = asyncio.Event()
        self._look_for_stops = False
        self._stops_seen_at = 0.0
        self._is_draining = False
        self._has_news = False
        self._second_look: asyncio.TimerHandle | None = None
        self._is_claim_open = False
        self._claiming: asyncio.Task[list[Claimed]] | None = None
        self._unheld: set[tuple[str, int]] = set()  # ours by the last heartbeat, but not running here
        self._has_strays = False
        self.shortage: str | None = (
            None  # what this process has run out of; nothing is claimed until it is looked again
        )
        self._shortages = 0  # since a run last ended
        self._put_off_runs: set[str] = set()
        self._ended: dict[tuple[str, ...], list[tuple[object, ...]]] = {}  # log lines, by the names of their fields
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
        if self._is_draining:
            await self._release_strays()
            self._turned_at = self._clock.monotonic()
            return
        if self.shortage is not None:
            self._turned_at = self._clock.monotonic()
            return
        await self._release_strays()
        self._is_claim_open = True
        self._claiming = asyncio.create_task(self.claims.claim(self._free_slots()))
        claims = await asyncio.shield(self._claiming)  # cancelled, the store might still carry it out: see `drain`
        if self._is_draining:
            return  # begun in between: `drain` waits for the claim, and releases it
        self._is_claim_open = False
        for claimed in claims:
            self._start(claimed)
        # A claim skips runs whose row or wake another transaction holds just then, and there is no news of its end.
        if has_news and self.claims.passes_by and self._second_look is None:
            self._second_look = asyncio.get_running_loop().call_later(_SECOND_LOOK, self._look_once_more)
        self._turned_at = self._clock.monotonic()

    async def _release_strays(self) -> None:
        # An open claim may have been made, and its answer lost on the way. What we do not know of is free.
        if self._is_claim_open or self._has_strays:
            await self.claims.release_all_but({held.claim for held in self._held.values()})
        self._is_claim_open = self._has_strays = False

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
        unfinished = [held for held in self._held.values() if not held.is_finishing]
        tasks: list[asyncio.Task[object]] = [held.task for held in self._held.values() if held.task is not None]
        for held in unfinished:
            held.give_up("released")
        if self._claiming is not None:
            tasks.append(self._claiming)
        if tasks:
            await asyncio.wait(tasks, timeout=_DRAIN_PATIENCE)
        self._log_ended()
        # Rows that a run was saving when it was cancelled may be locked for a moment more.
        for tries_left in reversed(range(_DRAIN_TRIES)):
            try:
                finishing = {held.claim for held in self._held.values() if held.is_finishing}
                await self.claims.release_all_but(finishing)
            except Unavailable as error:
                if tries_left:
                    await asyncio.sleep(PAUSE)
                    continue
                self._has_strays = True
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
            if not is_ours and not held.is_finishing and held.given_up is None:
                self._report_lost(held)
                held.give_up("lost")
        unheld = ours - {held.claim for held in self._held.values()}
        strays = unheld & self._unheld  # else it has only just been claimed, or has just ended
        self._unheld = unheld
        if strays:
            log.warning(
                "runs that this process no longer holds are released", extra={"run_ids": [each for each, _ in strays]}
            )
            self._has_strays = True
            self._nudged.set()

    def _free_slots(self) -> int:
        at_work = sum(held.run.is_headless and not held.is_finishing for held in self._held.values())
        return self._max_headless - at_work

    def _start(self, claimed: Claimed) -> None:
        stale = self._held.get(claimed.run.id)
        if stale is not None:  # we lost the lease unnoticed, as after a suspend, and claimed the run again
            stale.give_up("lost")
        held = _Held(run=claimed.run, limit=claimed.limit, frame_writer=FrameWriter(partial(self._save, claimed.run)))
        self._held[claimed.run.id] = held
        held.task = asyncio.create_task(self._carry_out(held), name=f"run-{claimed.run.id}")
        if claimed.run.stop_requested_at is not None:  # made to an owner that died
            _ask_to_stop(held)

    async def _carry_out(self, held: _Held) -> None:
        if not self.tracing.is_on:  # not even the block below: every run would pay for it
            enter_run(held.run)
            await self._carry_out_traced(held)
            return
        with self.tracing.attempt(held.run) as held.span:
            enter_run(held.run, held.span.trace_id)
            await self._carry_out_traced(held)

    async def _carry_out_traced(self, held: _Held) -> None:
        try:
            outcome = await self._execute(held)
            if self.tracing.is_on:
                note_end(held.span, outcome, held.usage, held.given_up)
            if outcome is not None:
                held.is_finishing = True
                self._nudged.set()  # its slot is free while its end is written: the next claim need not wait for that
                frame, unsaved = _closing_frame(held, outcome), held.frame_writer.pop_unsaved()
                finish = partial(self.claims.finish, last_step=held.last_step, unsaved=unsaved)
                if await insist(lambda: finish(held.run, outcome, frame), Unavailable):
                    self._log_end(held, outcome)
                    self._on_finished(held.run, outcome)
                self._shortages = 0
                self._put_off_runs.discard(held.run.id)
        finally:
            if self._held.get(held.run.id) is held:  # else a newer claim of ours has its place
                del self._held[held.run.id]
            self.nudge()

    async def _execute(self, held: _Held) -> Outcome | None:
        """Execute a run. None: it is no longer ours, so its end must not be written."""
        try:
            return await self._follow(held)
        except LeaseLost:
            self._report_lost(held)
            return None

    async def _follow(self, held: _Held) -> Outcome | None:
        # A bare timer: asyncio.timeout costs several times as much, and every run has one.
        limit = asyncio.get_running_loop().call_later(held.limit.total_seconds(), held.end_at_limit)
        try:
            async with held.frame_writer:
                reason = await self._listen(held)
        except LeaseLost:
            raise
        except asyncio.CancelledError:
            if held.given_up is None and held.stop.is_requested:
                return Outcome(status="stopped", reason="stopped")
            if held.given_up is None and held.is_over_limit and self.claims.is_store_away:
                return self._release(held)  # it spent the time waiting for the store
            if held.given_up is None and held.is_over_limit:
                text = f"The run took longer than its limit of {held.limit}."
                return Outcome(status="failed", reason="time_limit", error=text)
            return None
        except Exception as error:
            if held.stop.is_requested:  # as when its session was deleted under it
                return Outcome(status="stopped", reason="stopped")
            if isinstance(error, StoreUnavailable):  # the run goes on later, from its last saved step
                log.warning("run released: store unavailable", extra={"run_id": held.run.id, "problem": error.message})
                limit.cancel()
                await asyncio.sleep(PAUSE)
                return self._release(held)
            if (lacks := shortage(error)) is not None:
                return await self._put_off(held, lacks)
            if isinstance(error, WakefulError) and error.code in OUTAGES:
                limit.cancel()
                if await insist(partial(self.claims.hold, held.run, error.message), Unavailable):
                    log.warning(
                        "run held: the model does not answer", extra={"run_id": held.run.id, "code": error.code}
                    )
                    held.given_up = "released"
                    return None
            if isinstance(error, WakefulError):  # its message is enough, without a traceback
                log.warning("run failed", extra={"run_id": held.run.id, "code": error.code, "error": error.message})
                return Outcome(status="failed", reason=error.code, error=error.message)
            log.warning("run failed", exc_info=True, extra={"run_id": held.run.id})
            return Outcome(status="failed", reason="error", error=words_of(error))
        finally:
            limit.cancel()
        if held.stop.is_requested and held.last_step is None:  # else it had answered before the request
            return Outcome(status="stopped", reason="stopped")
        return Outcome(status="success", reason=reason, note=reason)

    def _report_lost(self, held: _Held) -> None:
        log.warning("lease lost", extra={"run_id": held.run.id, "fence": held.run.fence})
        self._on_lost()

    def _log_end(self, held: _Held, outcome: Outcome) -> None:
        if not log.isEnabledFor(logging.INFO):
            return
        names, values = _end_of(held, outcome)
        if not self._ended:
            asyncio.get_running_loop().call_later(_LOG_TOGETHER, self._log_ended, context=Context())
        self._ended.setdefault(names, []).append(values)

    def _log_ended(self) -> None:
        ended, self._ended = self._ended, {}
        for names, rows in ended.items():
            log_each(log, "run ended", names, rows)

    def _release(self, held: _Held) -> None:
        """Have the next turn release a run, not counted as an attempt."""
        held.given_up = "released"
        self._has_strays = True

    async def _put_off(self, held: _Held, lacks: Unavailable) -> None:
        """Release a run that met a shortage, and claim nothing for a while: other runs would meet it too.

        Each time twice as long as the last, until a run ends again.
        """
        pause = min(_SHORTAGE_PAUSE * 2**self._shortages, _MAX_SHORTAGE_PAUSE)
        if self.shortage is None:
            self._shortages += 1
            log.warning("runs are put off", extra={"code": lacks.code, "problem": lacks.message, "seconds": pause})
            asyncio.get_running_loop().call_later(pause, self._end_shortage)
        self.shortage = lacks.message
        held.given_up = "released"
        try:
            await self.claims.put_off(held.run, lacks.code, is_told=held.run.id in self._put_off_runs)
            self._put_off_runs.add(held.run.id)
        except Unavailable:
            self._has_strays = True  # released with the next turn

    def _end_shortage(self) -> None:
        self.shortage = None
        self._nudged.set()

    async def _listen(self, held: _Held) -> RunNote | None:
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
                        held.is_finishing = True
                    case StepSaved():
                        held.usage = event.usage or held.usage
                        await held.frame_writer.save(event)
                    case EndedEarly():
                        reason = event.reason
                    case StreamEnd():  # published with the finishing commit, not before
                        held.end = event
                    case _:
                        await held.frame_writer.say(event)
        return reason

    async def _record_call(self, held: _Held) -> None:
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
            if held is not None and not held.stop.is_requested:
                _ask_to_stop(held)


_END = ("run_id", "session_id", "agent_id", "trigger", "status", "seconds")
_END_OF_WAKE = (*_END, "wake_id")
_USAGE = ("model", "input_tokens", "output_tokens", "cost_dollars")


def _end_of(held: _Held, outcome: Outcome) -> tuple[tuple[str, ...], tuple[object, ...]]:
    """Return the fields of the log line about the end of a run: their names and their values."""
    run, usage, trace_id = held.run, held.usage, held.span.trace_id
    seconds = round(time.monotonic() - held.claimed_at, 3)
    names, values = _END, (run.id, run.session_id, run.agent_id, run.trigger, outcome.status, seconds)
    if run.wake_id is not None:
        names, values = _END_OF_WAKE, (*values, run.wake_id)
    if outcome.reason is not None:
        names, values = (*names, "reason"), (*values, outcome.reason)
    if usage is not None:
        cost = None if usage.cost_micros is None else usage.cost_micros / 1_000_000
        names, values = (*names, *_USAGE), (*values, usage.model, usage.input_tokens, usage.output_tokens, cost)
    return (names, values) if trace_id is None else ((*names, "trace_id"), (*values, trace_id))


def _closing_frame(held: _Held, outcome: Outcome) -> RunFrame | None:
    """Return the frame that ends the stream of a run; a run that has sent no frame needs none."""
    if outcome.status == "success":
        return held.end
    if not held.frame_writer.has_spoken and held.run.fence == 1:
        return None
    if outcome.status == "stopped":
        return StreamStopped()
    return ErrorFrame(message=outcome.error or "The run failed.", code=outcome.reason or "error")


def _ask_to_stop(held: _Held) -> None:
    """Ask the executor to end, and cancel it if it does not."""
    held.stop.request()
    asyncio.get_running_loop().call_later(STOP_PATIENCE, _cancel_work, held)


def _cancel_work(held: _Held) -> None:
    if held.task is not None and not held.is_finishing:
        held.task.cancel()
