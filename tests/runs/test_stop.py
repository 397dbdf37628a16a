"""Stop ends a run, queued or running, within two seconds, and its once-wake with it."""

import asyncio

import pytest

from harness import HOUR, MINUTE, NOON, Harness, doing, eventually
from wakeful.core.errors import NotFound
from wakeful.core.events import StepSaved

pytestmark = pytest.mark.both_stores


async def stop(harness, run, node=None):
    return await (node or harness.node).runs.stop(run.id, harness.user.id)


working: set[str] = set()  # the runs that have come to where they wait


async def heed(run, steps, stop):
    yield StepSaved(role="assistant", content="Working")
    working.add(run.id)
    await stop.wait()


async def ignore(run):
    working.add(run.id)
    await asyncio.sleep(60)


async def at_work(harness, script, **request):
    """Book a wake for now, let its run execute and return both."""
    wake = await harness.book(**({"at": NOON} | request))
    harness.executor.by_wake[wake.id] = script
    await harness.node.engine.scheduler.turn()
    await harness.node.engine.runner.turn()
    [run] = await harness.runs_of(wake)
    assert run.status == "running"

    async def is_working():
        return run.id in working

    await eventually(is_working)
    return wake, run


# ── Queued ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_queued_run_ends_at_once_and_its_wake_counts_as_fired(harness):
    wake = await harness.book(at=NOON)
    await harness.node.engine.scheduler.turn()
    [run] = await harness.runs_of(wake)
    assert await stop(harness, run)
    await harness.work()
    stopped, ended = await harness.run(run.id), await harness.wake(wake)
    assert (stopped.status, stopped.finished_at, stopped.started_at) == ("stopped", NOON, None)
    assert (ended.status, ended.reason, harness.executor.ran) == ("fired", "stopped", [])


async def test_a_queued_chat_run_ends_at_once_and_the_session_is_free(harness):
    session = await harness.session()
    run = await harness.node.runs.ask(session.id, harness.user.id, "Never mind")
    assert await stop(harness, run)
    assert (await harness.run(run.id)).status == "stopped"
    await harness.node.runs.ask(session.id, harness.user.id, "This instead")


async def test_stopping_a_queued_occurrence_leaves_its_recurring_wake_alone(harness):
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON)
    await harness.node.engine.scheduler.turn()
    [run] = await harness.runs_of(wake)
    await stop(harness, run)
    await harness.turn_at(NOON + HOUR)
    assert [run.status for run in await harness.runs_of(wake)] == ["stopped", "success"]


# ── Running ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_executor_that_heeds_the_wish_ends_by_itself(harness):
    wake, run = await at_work(harness, heed)
    assert await stop(harness, run)
    await harness.work()
    stopped, ended = await harness.run(run.id), await harness.wake(wake)
    assert (stopped.status, stopped.reason) == ("stopped", "stopped")
    assert (ended.status, ended.reason) == ("fired", "stopped")


async def test_what_a_stopped_run_had_saved_is_kept(harness):
    _, run = await at_work(harness, heed)
    await stop(harness, run)
    await harness.work()
    steps = await harness.node.store.read(lambda tx: tx.sessions.steps_of(run.id))
    assert [step.content for step in steps] == ["Working"]


async def test_an_executor_that_does_not_is_cut_off_within_two_seconds(harness):
    wake, run = await at_work(harness, doing(ignore))
    await stop(harness, run)
    async with asyncio.timeout(2):
        await harness.work()
    assert ((await harness.run(run.id)).status, (await harness.wake(wake)).status) == ("stopped", "fired")


async def test_stop_reaches_a_running_engine_by_itself(harness):
    _, run = await at_work(harness, doing(ignore))
    await harness.node.engine.start()
    try:
        await stop(harness, run)
        await eventually(lambda: harness.is_over(run))
        assert (await harness.run(run.id)).status == "stopped"
    finally:
        await harness.node.engine.stop()


async def test_only_the_run_that_was_meant_is_stopped(harness):
    _, meant = await at_work(harness, heed)
    _, other = await at_work(harness, heed)
    await stop(harness, meant)
    await harness.node.engine.runner.turn()
    await eventually(lambda: harness.is_over(meant))
    assert (await harness.run(other.id)).status == "running"
    await stop(harness, other)
    await harness.work()


async def test_stopping_twice_is_stopping(harness):
    _, run = await at_work(harness, heed)
    assert [(await stop(harness, run)).run_id, (await stop(harness, run)).run_id] == [run.id, run.id]
    await harness.work()
    assert await stop(harness, run) is None


async def test_someone_elses_run_cannot_be_stopped(harness):
    _, run = await at_work(harness, heed)
    with pytest.raises(NotFound):
        await harness.node.runs.stop(run.id, "eve")
    await stop(harness, run)
    await harness.work()


# ── Between two owners ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_whose_process_died_before_it_could_stop_is_stopped_not_resumed(harness):
    wake, run = await at_work(harness, doing(ignore))
    await stop(harness, run)
    await harness.crash()
    await harness.turn_at(NOON + MINUTE)
    assert ((await harness.run(run.id)).status, (await harness.wake(wake)).status) == ("stopped", "fired")
    assert len(harness.executor.ran) == 1


async def test_a_run_given_back_before_it_could_stop_is_asked_again_before_it_does_anything(backend_settings):
    async with Harness(backend_settings).opened() as harness:
        wake, run = await at_work(harness, doing(ignore))
        await stop(harness, run)
        await harness.node.engine.runner.drain()
    harness.node = harness.another_node()
    wishes = []

    async def look(run, steps, stop):
        wishes.append(stop.is_requested)
        return
        yield

    harness.executor.by_wake[wake.id] = look
    async with harness.node.opened():
        await harness.turn()
        assert (wishes, (await harness.run(run.id)).status) == ([True], "stopped")


async def test_stop_reaches_a_run_on_another_node(postgres_url, tmp_path):
    async with Harness(
        {"database_url": postgres_url, "data_dir": tmp_path, "config_dir": tmp_path}
    ).opened() as harness:
        _, run = await at_work(harness, doing(ignore))
        other = harness.another_node()
        await harness.node.engine.start()
        try:
            async with other.opened():
                await stop(harness, run, other)
                await eventually(lambda: harness.is_over(run))
            assert (await harness.run(run.id)).status == "stopped"
        finally:
            await harness.node.engine.stop()
