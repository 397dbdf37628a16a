"""Someone sets the clock while runs are at work: nothing is cut off, stolen, dropped or reported."""

import pytest

from wakeful.domain.events import StepSaved
from wakeful.service.runs.claims import Claims
from world import DAY, HOUR, MINUTE, NOON, SECOND, World

LEASE = 30 * SECOND
STEPS = [pytest.param(HOUR, id="+1h"), pytest.param(-DAY, id="-1d")]


async def beat(claims: Claims) -> set[str]:
    """Let a heartbeat come."""
    connection = await claims.open_heartbeat()
    try:
        return {run_id for run_id, _ in await claims.renew(connection)}
    finally:
        await connection.close()


@pytest.mark.parametrize(("by", "beats"), [(HOUR, False), (DAY, True), (-HOUR, False)], ids=["+1h", "+1d", "-1h"])
async def test_live_runs_go_on_through_a_step(world, by, beats):
    gate = world.gate()

    async def save_after(run, steps, stop):
        async for event in gate(run, steps, stop):
            yield event
        yield StepSaved(role="assistant", content="Here I am.")

    world.executor.default = save_after
    wake = await world.book(at=NOON)
    session = await world.session()
    chat = await world.node.runs.ask(session.id, world.user.id, "Hello?")
    await world.turn()
    world.clock.step(by)
    if beats:
        assert len(await beat(world.node.engine.runner._claims)) == 2
    assert await world.turn() > world.clock.now(), "the scheduler would turn without a pause"
    await world.turn_at(world.clock.now() + 2 * LEASE)
    await world.let_through(gate)
    [headless] = await world.runs_of(wake)
    for run in (headless, await world.run(chat.id)):
        assert (run.status, run.attempt, run.reason) == ("success", 1, None)
    assert len(world.executor.ran) == 2
    assert await world.notices() == []


async def test_right_after_a_step_nothing_counts_as_overdue_or_stuck(world):
    world.executor.default = world.gate()
    await world.book(at=NOON)
    await world.book(at=NOON + HOUR)
    await world.turn()
    world.clock.step(DAY)
    assert (await world.node.engine.upkeep.audit()).is_good
    world.clock.advance(MINUTE)
    assert len((await world.node.engine.upkeep.audit()).overdue_wakes) == 1  # nobody has turned for a minute


async def test_the_time_the_clock_was_set_by_is_not_time_a_low_run_has_waited(world):
    world.executor.default = world.gate()
    for _ in range(3):
        await world.book(at=NOON)
    await world.turn()
    low = await world.book(at=NOON, priority="low")
    await world.turn()
    world.clock.step(HOUR)
    await world.turn()
    assert [run.status for run in await world.runs_of(low)] == ["queued"]
    await world.turn_at(NOON + HOUR + 61 * SECOND)
    assert [run.reason for run in await world.runs_of(low)] == ["no_slot"]


# ── Two nodes ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def another(world):
    """Another process on the same store, with a run that it holds."""
    node = world.node
    return Claims(node.store, node.stream, world.clock, node.rules, "another", LEASE)


async def hold_one(world, another):
    wake = await world.book(at=NOON)
    await world.node.engine.scheduler.turn()
    await another.claim(1)
    return wake


async def status_of(world, wake):
    [run] = await world.runs_of(wake)
    return run.status


@pytest.mark.parametrize("by", STEPS)
async def test_a_step_of_the_common_clock_lets_no_node_take_what_another_is_at_work_on(world, another, by):
    wake = await hold_one(world, another)
    world.clock.step(by)
    until = await world.node.engine.scheduler.turn()
    assert (await status_of(world, wake), until > world.clock.now()) == ("running", True)
    world.clock.advance(LEASE / 3)
    await beat(another)
    for _ in range(6):
        world.clock.advance(LEASE / 3)
        await world.node.engine.scheduler.turn()
        assert await status_of(world, wake) == "running"
        await beat(another)


@pytest.mark.parametrize("by", STEPS)
async def test_a_dead_nodes_run_is_taken_over_one_lease_after_a_step(world, another, by):
    wake = await hold_one(world, another)
    world.clock.step(by)
    world.clock.advance(LEASE - SECOND)
    await world.node.engine.scheduler.turn()
    assert await status_of(world, wake) == "running"
    world.clock.advance(SECOND)
    await world.node.engine.scheduler.turn()
    assert await status_of(world, wake) == "queued"


async def test_a_step_does_not_make_another_nodes_directory_look_away(postgres_url, tmp_path):
    settings = {"database_url": postgres_url, "data_dir": tmp_path / "a", "config_dir": tmp_path}
    world = World(settings)
    other = world.another_node(data_dir=tmp_path / "b")
    async with world.node.opened(), other.opened():
        await world.settle_in()
        for node in (world.node, other):
            await node.services.directories.arrive()
        await other.services.directories.bind(world.agent.id)
        wake = await world.book(at=NOON)
        await world.node.engine.scheduler.turn()
        holds = world.node.engine._holds
        world.clock.step(HOUR)
        await holds.sweep()
        assert [(run.status, run.reason) for run in await world.runs_of(wake)] == [("queued", None)]
        world.clock.advance(LEASE)
        await holds.sweep()
        assert [run.reason for run in await world.runs_of(wake)] == ["memory_elsewhere"]
