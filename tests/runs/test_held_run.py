"""What becomes of a run whose work has ended on this node, and the phases that it passes."""

import asyncio
import errno
from datetime import timedelta

import pytest

from harness import NOON
from wakeful.core.errors import StoreUnavailable, WakefulError
from wakeful.core.records import Outcome
from wakeful.core.types import ClaimedRun
from wakeful.models.errors import ModelBusy
from wakeful.runs.frame_writer import FrameWriter
from wakeful.runs.held_run import FOLLOWING, GoesOn, HeldRun, end_of_work
from wakeful.runs.rules import LeaseLost

RUN = ClaimedRun(
    id="r1",
    agent_id="a1",
    user_id="u1",
    session_id="s1",
    wake_id="w1",
    kind="recall",
    trigger="wake",
    scheduled_by="agent",
    nominal_at=NOON,
    queued_at=NOON,
    status="running",
)
STOPPED = Outcome(status="stopped", reason="stopped")
AWAY = StoreUnavailable("The database does not answer.")
BUSY = ModelBusy("m", "It is overloaded.")
CUT = asyncio.CancelledError()
FULL = OSError(errno.ENOSPC, "No space left on device")


async def save(_step, _frames):
    """Nothing is saved here."""


def held(phase="executing"):
    return HeldRun(run=RUN, limit=timedelta(minutes=10), frame_writer=FrameWriter(save), phase=phase)


def failed(reason, error):
    return Outcome(status="failed", reason=reason, error=error)


@pytest.mark.parametrize(
    ("phase", "raised", "end"),
    [
        pytest.param("finishing", None, Outcome(status="success"), id="answered"),
        pytest.param("executing", None, Outcome(status="success"), id="ended without an answer"),
        pytest.param("stopping", None, STOPPED, id="ended when asked to"),
        pytest.param("stopping", CUT, STOPPED, id="cancelled because it did not end by itself"),
        pytest.param("stopping", WakefulError("No such session."), STOPPED, id="its session was deleted"),
        pytest.param(
            "over_limit", CUT, failed("time_limit", "The run took longer than its limit of 0:10:00."), id="limit"
        ),
        pytest.param("released", CUT, GoesOn("gone"), id="drained"),
        pytest.param("lost", CUT, GoesOn("gone"), id="found to be lost by the heartbeat"),
        pytest.param("executing", CUT, GoesOn("gone"), id="the event loop ends"),
        pytest.param("executing", LeaseLost(RUN), GoesOn("lost"), id="lost when a step was saved"),
        pytest.param("stopping", LeaseLost(RUN), GoesOn("lost"), id="lost while it stops"),
        pytest.param("executing", AWAY, GoesOn("store_away"), id="the store is away"),
        pytest.param("executing", BUSY, GoesOn("outage", BUSY.code, BUSY.message), id="the model does not answer"),
        pytest.param("executing", WakefulError("No."), failed("error", "No."), id="an error with a message"),
        pytest.param("executing", ValueError("five"), failed("error", "ValueError: five"), id="an unexpected error"),
        pytest.param("released", None, Outcome(status="success"), id="done before it could be cancelled"),
    ],
)
def test_the_end_of_work_is_decided_by_the_phase_and_by_what_was_raised(phase, raised, end):
    assert end_of_work(held(phase), None, raised, is_store_away=False) == end


def test_the_time_that_a_run_waited_for_the_store_is_not_held_against_it():
    assert end_of_work(held("over_limit"), None, CUT, is_store_away=True) == GoesOn("store_away")


def test_a_full_disk_is_a_shortage_that_no_run_fails_of():
    end = end_of_work(held(), None, FULL, is_store_away=False)
    assert isinstance(end, GoesOn)
    assert (end.why, end.code) == ("shortage", "disk_full")


def test_an_early_end_is_a_success_with_a_note():
    end = end_of_work(held(), "budget", None, is_store_away=False)
    assert end == Outcome(status="success", reason="budget", note="budget")


@pytest.mark.parametrize("phase", FOLLOWING)
@pytest.mark.parametrize("asked", FOLLOWING)
def test_a_run_enters_only_the_phases_that_may_follow(phase, asked):
    run = held(phase)
    assert run.enter(asked) == (asked in FOLLOWING[phase])
    assert run.phase == (asked if asked in FOLLOWING[phase] else phase)


@pytest.mark.parametrize("asked", ["over_limit", "released", "lost"])
async def test_nothing_cancels_a_run_whose_end_is_being_written(asked):
    run = held("finishing")
    run.task = asyncio.create_task(asyncio.sleep(0, "written"))
    assert not run.cut_off(asked)
    assert await run.task == "written"


async def test_work_that_does_not_end_by_itself_is_cancelled_after_a_while(monkeypatch):
    monkeypatch.setattr("wakeful.runs.held_run.STOP_PATIENCE", 0)
    run = held()
    run.task = asyncio.create_task(asyncio.Event().wait())
    run.ask_to_stop()
    assert run.stop.is_requested
    with pytest.raises(asyncio.CancelledError):
        await run.task
