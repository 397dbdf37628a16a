"""Stop ends a run, queued or at work, within two seconds, and its once-wake with it."""

import asyncio

import pytest

from wakeful.domain.errors import NotFound
from wakeful.domain.events import StepSaved
from world import HOUR, MINUTE, NOON, World, doing, eventually


async def stop(world, run, node=None):
    return await (node or world.node).runs.stop(run.id, world.user.id)


async def heed(run, steps, stop):
    yield StepSaved(role="assistant", content="Working")
    await stop.wait()


async def ignore(run):
    await asyncio.sleep(60)


async def at_work(world, script, **request):
    """Book a wake for now, let its run be at work and return both."""
    wake = await world.book(**({"at": NOON} | request))
    world.executor.by_wake[wake.id] = script
    await world.node.engine.scheduler.turn()
    await world.node.engine.runner.turn()
    [run] = await world.runs_of(wake)
    assert run.status == "running"
    await asyncio.sleep(0.05)
    return wake, run


# ── Queued ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_queued_run_ends_at_once_and_its_wake_counts_as_fired(world):
    wake = await world.book(at=NOON)
    await world.node.engine.scheduler.turn()
    [run] = await world.runs_of(wake)
    assert await stop(world, run)
    await world.work()
    stopped, ended = await world.run(run.id), await world.wake(wake)
    assert (stopped.status, stopped.finished_at, stopped.started_at) == ("stopped", NOON, None)
    assert (ended.status, ended.reason, world.executor.ran) == ("fired", "stopped", [])


async def test_a_queued_chat_run_ends_at_once_and_the_session_is_free(world):
    session = await world.session()
    run = await world.node.runs.ask(session.id, world.user.id, "Never mind")
    assert await stop(world, run)
    assert (await world.run(run.id)).status == "stopped"
    await world.node.runs.ask(session.id, world.user.id, "This instead")


async def test_stopping_a_queued_occurrence_leaves_its_recurring_wake_alone(world):
    wake = await world.book(call_type="recurring", every=HOUR, at=NOON)
    await world.node.engine.scheduler.turn()
    [run] = await world.runs_of(wake)
    await stop(world, run)
    await world.turn_at(NOON + HOUR)
    assert [run.status for run in await world.runs_of(wake)] == ["stopped", "success"]


# ── At work ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_executor_that_heeds_the_wish_ends_by_itself(world):
    wake, run = await at_work(world, heed)
    assert await stop(world, run)
    await world.work()
    stopped, ended = await world.run(run.id), await world.wake(wake)
    assert (stopped.status, stopped.reason) == ("stopped", "stopped")
    assert (ended.status, ended.reason) == ("fired", "stopped")


async def test_what_a_stopped_run_had_saved_is_kept(world):
    _, run = await at_work(world, heed)
    await stop(world, run)
    await world.work()
    steps = await world.node.store.read(lambda tx: tx.sessions.steps_of(run.id))
    assert [step.content for step in steps] == ["Working"]


async def test_an_executor_that_does_not_is_cut_off_within_two_seconds(world):
    wake, run = await at_work(world, doing(ignore))
    await stop(world, run)
    async with asyncio.timeout(2):
        await world.work()
    assert ((await world.run(run.id)).status, (await world.wake(wake)).status) == ("stopped", "fired")


async def test_stop_reaches_a_running_engine_by_itself(world):
    _, run = await at_work(world, doing(ignore))
    await world.node.engine.start()
    try:
        await stop(world, run)
        await eventually(lambda: world.is_over(run))
        assert (await world.run(run.id)).status == "stopped"
    finally:
        await world.node.engine.stop()


async def test_only_the_run_that_was_meant_is_stopped(world):
    _, meant = await at_work(world, heed)
    _, other = await at_work(world, heed)
    await stop(world, meant)
    await world.node.engine.runner.turn()
    await eventually(lambda: world.is_over(meant))
    assert (await world.run(other.id)).status == "running"
    await stop(world, other)
    await world.work()


async def test_stopping_twice_is_stopping(world):
    _, run = await at_work(world, heed)
    assert [(await stop(world, run)).run_id, (await stop(world, run)).run_id] == [run.id, run.id]
    await world.work()
    assert await stop(world, run) is None


async def test_someone_elses_run_cannot_be_stopped(world):
    _, run = await at_work(world, heed)
    with pytest.raises(NotFound):
        await world.node.runs.stop(run.id, "eve")
    await stop(world, run)
    await world.work()


# ── Between two owners ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_whose_process_died_before_it_could_stop_is_stopped_not_resumed(world):
    wake, run = await at_work(world, doing(ignore))
    await stop(world, run)
    await world.crash()
    await world.turn_at(NOON + MINUTE)
    assert ((await world.run(run.id)).status, (await world.wake(wake)).status) == ("stopped", "fired")
    assert len(world.executor.ran) == 1


async def test_a_run_given_back_before_it_could_stop_is_asked_again_before_it_does_anything(backend_settings):
    world = World(backend_settings)
    async with world.node.opened():
        await world.settle_in()
        wake, run = await at_work(world, doing(ignore))
        await stop(world, run)
        await world.node.engine.runner.drain()
    world.node = world.another_node()
    wishes = []

    async def look(run, steps, stop):
        wishes.append(stop.is_requested)
        return
        yield

    world.executor.by_wake[wake.id] = look
    async with world.node.opened():
        await world.turn()
        assert (wishes, (await world.run(run.id)).status) == ([True], "stopped")


async def test_stop_reaches_a_run_on_another_node(postgres_url, tmp_path):
    world = World({"database_url": postgres_url, "data_dir": tmp_path, "config_dir": tmp_path})
    async with world.node.opened():
        await world.settle_in()
        _, run = await at_work(world, doing(ignore))
        other = world.another_node()
        await world.node.engine.start()
        try:
            async with other.opened():
                await stop(world, run, other)
                await eventually(lambda: world.is_over(run))
            assert (await world.run(run.id)).status == "stopped"
        finally:
            await world.node.engine.stop()
