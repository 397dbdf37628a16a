"""A commit whose answer is lost: PostgreSQL, with the connection cut at the COMMIT."""

from datetime import datetime

import pytest

from harness import Harness
from postgres_line import Line
from wakeful.core.errors import StoreUnavailable
from wakeful.core.events import StepSaved
from wakeful.outgoing.notify import Notify
from wakeful.store.rows import to_micros
from wakeful.wakes.firing import Firing


def claim_at(now: datetime) -> bytes:
    """Return what a claim made now is known by on the line: the time among its parameters."""
    return to_micros(now).to_bytes(8)


@pytest.fixture
async def line(postgres_url):
    return Line(postgres_url)


@pytest.fixture
async def harness(line, tmp_path):
    settings = {"data_dir": tmp_path, "config_dir": tmp_path}
    async with line.laid() as url, Harness(settings | {"database_url": url}).opened() as harness:
        yield harness


async def test_a_step_whose_answer_got_lost_is_saved_once(harness, line):
    async def two_steps(run, steps, stop):
        yield StepSaved(role="assistant", content="one")
        line.cut_at(b"COMMIT")
        yield StepSaved(role="assistant", content="two")

    harness.executor.default = two_steps
    wake = await harness.book(call_type="immediate")
    await harness.turn()
    assert line.cuts == 1
    [run] = await harness.runs_of(wake)
    assert run.status == "success"
    steps = await harness.node.store.read(lambda tx: tx.sessions.steps_of(run.id))
    assert [step.content for step in steps] == ["one", "two"]


async def test_a_run_whose_claim_was_answered_by_nobody_is_claimed_again(harness, line):
    wake = await harness.book(call_type="immediate")
    await harness.node.engine.scheduler.turn()
    line.cut_at(claim_at(harness.clock.now()))
    with pytest.raises(StoreUnavailable):
        await harness.node.engine.runner.turn()
    assert line.cuts == 1
    [run] = await harness.runs_of(wake)
    assert run.status == "running"  # and nobody knows

    await harness.work()
    [run] = await harness.runs_of(wake)
    assert (run.status, run.attempt) == ("success", 1)
    assert len(harness.executor.ran) == 1


async def test_what_is_at_work_stays_so_when_the_answer_to_another_claim_gets_lost(harness, line):
    gate = harness.executor.default = harness.gate()
    first = await harness.book(call_type="immediate")
    await harness.turn()
    second = await harness.book(call_type="immediate")
    await harness.node.engine.scheduler.turn()
    line.cut_at(claim_at(harness.clock.now()))
    with pytest.raises(StoreUnavailable):
        await harness.node.engine.runner.turn()
    await harness.work()
    await harness.let_through(gate)
    for wake in (first, second):
        [run] = await harness.runs_of(wake)
        assert (run.status, run.attempt, run.fence > 1) == ("success", 1, wake is second)
    assert len(harness.executor.ran) == 2


async def test_a_finish_whose_answer_got_lost_stands(harness, line):
    async def cut_at_the_end(run, steps, stop):
        line.cut_at(b"COMMIT")
        return
        yield

    harness.executor.default = cut_at_the_end
    wake = await harness.book(call_type="immediate")
    await harness.turn()
    assert line.cuts == 1
    [run] = await harness.runs_of(wake)
    assert run.status == "success"
    assert (await harness.wake(wake)).status == "fired"


async def test_firing_whose_answer_got_lost_is_not_done_again(harness, line):
    wake = await harness.book(call_type="recurring", at=harness.clock.now())
    firing = Firing(harness.node.store, harness.clock, harness.node.rules, "somebody")
    line.cut_at(b"COMMIT")
    with pytest.raises(StoreUnavailable):
        await firing.fire_due()
    assert line.cuts == 1
    await harness.turn()
    assert [run.covers for run in await harness.runs_of(wake)] == [1]


async def test_a_booking_whose_answer_got_lost_is_made_once(harness, line):
    session = await harness.session()
    line.cut_at(b"Read the log")  # a booking is one statement, and commits by itself
    booked = await harness.book(session=session, instructions="Read the log with read_file.")
    assert line.cuts == 1
    [wake] = await harness.node.store.read(lambda tx: tx.wakes.of_session(session.id, 50))
    assert (wake.id, wake.status) == (booked.id, "pending")


async def test_a_change_whose_answer_got_lost_is_in_doubt_and_not_made_again(harness, line):
    session = await harness.session()
    line.cut_at(b"COMMIT")
    with pytest.raises(StoreUnavailable, match="may have been made") as refused:
        await harness.node.sessions.rename(session.id, harness.user.id, "Renamed")
    assert refused.value.is_in_doubt
    assert line.cuts == 1
    assert (await harness.node.sessions.get(session.id, harness.user.id)).title == "Renamed"


async def test_a_change_cut_off_before_its_commit_is_made_on_another_connection(harness, line):
    session = await harness.session()
    line.cut_at(b"Renamed")  # among the parameters of a statement
    await harness.node.sessions.rename(session.id, harness.user.id, "Renamed")
    assert line.cuts == 1
    assert (await harness.node.sessions.get(session.id, harness.user.id)).title == "Renamed"


async def test_a_read_that_is_cut_off_is_made_on_another_connection(harness, line):
    session = await harness.session()
    line.cut_at(session.id.encode())
    assert (await harness.node.sessions.get(session.id, harness.user.id)).id == session.id
    assert line.cuts == 1


async def test_a_next_run_whose_answer_got_lost_holds_its_slot_and_is_not_replaced_by_itself(harness, line):
    line.cut_at(b"COMMIT")
    wake = await harness.book(kind="next_run")
    assert line.cuts == 1
    assert (await harness.wake(wake)).status == "pending"
    assert [decision.code for decision in await harness.why(wake)] == ["booked"]


async def test_a_notification_whose_answer_got_lost_is_told_once_and_counts_as_told(harness, line):
    services = harness.node.services
    notify = Notify(harness.node.store, harness.clock, services.outbox, services.hub, services.data.views_of)
    session = await harness.session()
    run = await harness.node.runs.ask(session.id, harness.user.id, "Watch the build")
    await harness.work()
    line.cut_at(b"COMMIT")
    told = await notify.send(run, harness.agent, "Red", "Three tests fail.")
    assert line.cuts == 1
    assert told.is_new
    assert [notice.id for notice in await harness.notices()] == [told.notice.id]


async def test_a_question_whose_answer_got_lost_is_asked_once(harness, line):
    approvals = harness.node.services.approvals
    wake = await harness.book(call_type="immediate")
    await harness.turn()
    [run] = await harness.runs_of(wake)
    line.cut_at(b"COMMIT")
    asked = await approvals.ask(run, harness.agent, "call_1", "run_command", {"command": "ls"}, is_resumed=False)
    assert line.cuts == 1
    assert asked.status == "refused"  # nobody is there
    assert len(await approvals.of_run(run.id, harness.user.id)) == 1
    assert len(await harness.notices()) == 1
