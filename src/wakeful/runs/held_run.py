"""A run that this process holds: the phases that it passes here, and how its work ends."""

import asyncio
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from wakeful.core.errors import StoreUnavailable, WakefulError
from wakeful.core.events import ErrorFrame, RunFrame, StepSaved, StreamEnd, StreamStopped
from wakeful.core.records import Outcome
from wakeful.core.resources import shortage, words_of
from wakeful.core.types import ClaimedRun, RunNote, RunUsage
from wakeful.runs.executor import Stop
from wakeful.runs.frame_writer import FrameWriter
from wakeful.runs.rules import OUTAGES, LeaseLost
from wakeful.telemetry.tracing import OFF, Span

STOP_PATIENCE = 1.5  # seconds an executor has to end by itself

Phase = Literal[
    "executing",  # claimed, and its executor works
    "stopping",  # a person asked; the executor has a moment to end by itself
    "over_limit",  # its time is up, so its work is cancelled
    "finishing",  # its work is done: it must not be cancelled before its end is written
    "released",  # goes back into the queue, and on from its last saved step
    "lost",  # the lease ran out: another process may hold it
]

# The phases that may follow each; asked for another one, a run stays in its own.
FOLLOWING: dict[Phase, frozenset[Phase]] = {
    "executing": frozenset({"stopping", "over_limit", "finishing", "released", "lost"}),
    "stopping": frozenset({"finishing", "released", "lost"}),
    "over_limit": frozenset({"finishing", "released", "lost"}),
    "finishing": frozenset(),
    "released": frozenset({"finishing"}),  # it was done before it could be cancelled
    "lost": frozenset({"finishing"}),  # the same; the store refuses the end of a run that is not ours
}


@dataclass(slots=True, eq=False)
class HeldRun:
    """A run that this process executes."""

    run: ClaimedRun
    limit: timedelta
    frame_writer: FrameWriter
    phase: Phase = "executing"
    stop: Stop = field(default_factory=Stop)
    claimed_at: float = field(default_factory=time.monotonic)
    has_called: bool = False  # a model or a tool
    last_step: StepSaved | None = None  # saved with its end
    last_frame: StreamEnd | None = None  # if it succeeds
    usage: RunUsage | None = None  # as of its last step
    span: Span = OFF
    task: "asyncio.Task[None] | None" = None

    @property
    def claim(self) -> tuple[str, int]:
        """Return the identity of the claim: a later one of the same run has another fence."""
        return self.run.id, self.run.fence

    def enter(self, phase: Phase) -> bool:
        """Go on to a phase, if it may follow."""
        if phase not in FOLLOWING[self.phase]:
            return False
        self.phase = phase
        return True

    def cut_off(self, phase: Literal["over_limit", "released", "lost"]) -> bool:
        """Go on to a phase in which the work is cancelled, if it may follow."""
        may_follow = self.enter(phase)
        if may_follow and self.task is not None:
            self.task.cancel()
        return may_follow

    def ask_to_stop(self) -> None:
        """Ask the executor to end, and cancel it if it does not."""
        if self.enter("stopping"):
            self.stop.request()
            asyncio.get_running_loop().call_later(STOP_PATIENCE, self._cancel_if_still_stopping)

    def _cancel_if_still_stopping(self) -> None:
        if self.phase == "stopping" and self.task is not None:
            self.task.cancel()

    def closing_frame(self, outcome: Outcome) -> RunFrame | None:
        """Return the frame that ends the stream; a run that has sent no frame needs none."""
        if outcome.status == "success":
            return self.last_frame
        if not self.frame_writer.has_spoken and self.run.fence == 1:
            return None
        if outcome.status == "stopped":
            return StreamStopped()
        return ErrorFrame(message=outcome.error or "The run failed.", code=outcome.reason or "error")


@dataclass(frozen=True, slots=True)
class GoesOn:
    """The work has not ended for good: what to do with the run."""

    why: Literal[
        "gone",  # nothing: it was released or lost before, or this process ends
        "lost",  # nothing: the lease ran out
        "store_away",  # release it
        "shortage",  # release it, and claim nothing for a while
        "outage",  # its model does not answer: a once-wake is held, any other run fails
    ]
    code: str = ""  # of the shortage or the outage
    problem: str = ""


_STOPPED = Outcome(status="stopped", reason="stopped")


def end_of_work(
    held: HeldRun, note: RunNote | None, error: Exception | asyncio.CancelledError | None, *, is_store_away: bool
) -> Outcome | GoesOn:
    """Decide what becomes of a run whose work has ended or was cut off, by its phase and what its work raised."""
    if error is None:  # an executor that had answered before it was asked to stop is finishing
        return _STOPPED if held.phase == "stopping" else Outcome(status="success", reason=note, note=note)
    if isinstance(error, LeaseLost):
        return GoesOn("lost")
    if held.phase == "stopping":  # whatever it raised, as when its session was deleted under it
        return _STOPPED
    if isinstance(error, asyncio.CancelledError):
        if held.phase != "over_limit":
            return GoesOn("gone")
        if is_store_away:  # it spent the time waiting for the store
            return GoesOn("store_away")
        text = f"The run took longer than its limit of {held.limit}."
        return Outcome(status="failed", reason="time_limit", error=text)
    if isinstance(error, StoreUnavailable):
        return GoesOn("store_away")
    if (lacks := shortage(error)) is not None:
        return GoesOn("shortage", lacks.code, lacks.message)
    if isinstance(error, WakefulError):
        if error.code in OUTAGES:
            return GoesOn("outage", error.code, error.message)
        return Outcome(status="failed", reason=error.code, error=error.message)
    return Outcome(status="failed", reason="error", error=words_of(error))
