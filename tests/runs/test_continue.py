"""Continuing a failed run, and running a wake again."""

import pytest

from harness import NOON
from wakeful.core.events import StepSaved
from wakeful.runs.rules import NotFromAWake, NothingToContinue
from wakeful.sessions.service import SessionBusy
from wakeful.store.runs import NoSuchRun

pytestmark = pytest.mark.both_stores


async def fail(run, steps, stop):
    yield StepSaved(role="assistant", content="half of it")
    raise RuntimeError("the disk is full")


async def failed_run(harness):
    wake = await harness.book(at=NOON)
    harness.executor.by_wake[wake.id] = fail
    await harness.turn()
    [run] = await harness.runs_of(wake)
    assert run.status == "failed"
    del harness.executor.by_wake[wake.id]
    return wake, run


async def test_a_failed_run_goes_on_from_its_last_saved_step(harness):
    wake, run = await failed_run(harness)
    await harness.node.runs.go_on(run.id, harness.user.id)
    await harness.work()
    after = await harness.run(run.id)
    assert (after.status, after.reason, after.error) == ("success", "continued", None)
    assert harness.executor.ran[-1].steps == ["half of it"]
    assert [each.id for each in await harness.runs_of(wake)] == [run.id]  # still one record for its instant


async def test_a_run_that_ended_well_has_nothing_to_go_on_with(harness):
    wake = await harness.book(at=NOON)
    await harness.turn()
    [run] = await harness.runs_of(wake)
    with pytest.raises(NothingToContinue, match="success"):
        await harness.node.runs.go_on(run.id, harness.user.id)


async def test_no_run_goes_on_in_a_session_that_is_busy(harness):
    wake, run = await failed_run(harness)
    session = await harness.node.sessions.get(wake.session_id, harness.user.id)
    async with harness.talking(session):
        with pytest.raises(SessionBusy):
            await harness.node.runs.go_on(run.id, harness.user.id)
    assert (await harness.run(run.id)).status == "failed"


async def test_a_wake_is_run_again_as_an_extra_run(harness):
    wake, first = await failed_run(harness)
    before = await harness.wake(wake)
    extra = await harness.node.runs.again(first.id, harness.user.id)
    await harness.work()
    assert (await harness.run(extra.id)).status == "success"
    assert (extra.covers, extra.trigger, extra.session_id) == (0, "run_now", wake.session_id)
    assert (await harness.wake(wake)).status == before.status


async def test_a_wake_with_a_fresh_session_gets_another_one_when_it_is_run_again(harness):
    wake = await harness.book(kind="next_run", at=NOON)
    await harness.turn()
    [first] = await harness.runs_of(wake)
    extra = await harness.node.runs.again(first.id, harness.user.id)
    assert extra.session_id not in (None, first.session_id)
    session = await harness.node.sessions.get(extra.session_id, harness.user.id)
    assert session.origin_wake_id == wake.id


async def test_an_answer_to_a_message_is_not_run_again(harness):
    session = await harness.session()
    run = await harness.node.runs.ask(session.id, harness.user.id, "Hello?")
    await harness.work()
    with pytest.raises(NotFromAWake, match="send the message again"):
        await harness.node.runs.again(run.id, harness.user.id)


async def test_nobody_continues_what_is_someone_elses(harness):
    _, run = await failed_run(harness)
    for act in (harness.node.runs.go_on, harness.node.runs.again):
        with pytest.raises(NoSuchRun):
            await act(run.id, "somebody else")
