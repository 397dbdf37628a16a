"""What people may do about a run that ended before its work was done."""

import pytest

from wakeful.domain.events import StepSaved
from wakeful.domain.runs.runs import NotFromAWake, NothingToContinue, SessionBusy
from wakeful.store.runs.runs import NoSuchRun
from world import NOON


async def fail(run, steps, stop):
    yield StepSaved(role="assistant", content="half of it")
    raise RuntimeError("the disk is full")


async def failed_run(world):
    wake = await world.book(at=NOON)
    world.executor.by_wake[wake.id] = fail
    await world.turn()
    [run] = await world.runs_of(wake)
    assert run.status == "failed"
    del world.executor.by_wake[wake.id]
    return wake, run


async def test_a_failed_run_goes_on_from_its_last_saved_step(world):
    wake, run = await failed_run(world)
    await world.node.runs.go_on(run.id, world.user.id)
    await world.work()
    after = await world.run(run.id)
    assert (after.status, after.reason, after.error) == ("success", "continued", None)
    assert world.executor.ran[-1].steps == ["half of it"]
    assert [each.id for each in await world.runs_of(wake)] == [run.id]  # still one record for its instant


async def test_a_run_that_ended_well_has_nothing_to_go_on_with(world):
    wake = await world.book(at=NOON)
    await world.turn()
    [run] = await world.runs_of(wake)
    with pytest.raises(NothingToContinue, match="success"):
        await world.node.runs.go_on(run.id, world.user.id)


async def test_no_run_goes_on_in_a_session_that_is_busy(world):
    wake, run = await failed_run(world)
    session = await world.node.sessions.get(wake.session_id, world.user.id)
    async with world.talking(session):
        with pytest.raises(SessionBusy):
            await world.node.runs.go_on(run.id, world.user.id)
    assert (await world.run(run.id)).status == "failed"


async def test_a_wake_is_run_again_as_an_extra_run(world):
    wake, first = await failed_run(world)
    before = await world.wake(wake)
    extra = await world.node.runs.again(first.id, world.user.id)
    await world.work()
    assert (await world.run(extra.id)).status == "success"
    assert (extra.covers, extra.trigger, extra.session_id) == (0, "run_now", wake.session_id)
    assert (await world.wake(wake)).status == before.status


async def test_a_wake_with_a_fresh_session_gets_another_one_when_it_is_run_again(world):
    wake = await world.book(kind="next_run", at=NOON)
    await world.turn()
    [first] = await world.runs_of(wake)
    extra = await world.node.runs.again(first.id, world.user.id)
    assert extra.session_id not in (None, first.session_id)
    session = await world.node.sessions.get(extra.session_id, world.user.id)
    assert session.origin_wake_id == wake.id


async def test_an_answer_to_a_message_is_not_run_again(world):
    session = await world.session()
    run = await world.node.runs.ask(session.id, world.user.id, "Hello?")
    await world.work()
    with pytest.raises(NotFromAWake, match="send the message again"):
        await world.node.runs.again(run.id, world.user.id)


async def test_nobody_continues_what_is_someone_elses(world):
    _, run = await failed_run(world)
    for act in (world.node.runs.go_on, world.node.runs.again):
        with pytest.raises(NoSuchRun):
            await act(run.id, "somebody else")
