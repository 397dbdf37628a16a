"""The clock is set while runs execute: none is cut off, taken over, dropped or reported."""

import pytest

from harness import DAY, HOUR, MINUTE, NOON, SECOND, Harness
from wakeful.core.events import StepSaved
from wakeful.runs.claims import Claims

pytestmark = pytest.mark.both_stores

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
async def test_live_runs_go_on_through_a_step(harness, by, beats):
    gate = harness.gate()

    async def save_after(run, steps, stop):
        async for event in gate(run, steps, stop):
            yield event
        yield StepSaved(role="assistant", content="Here I am.")

    harness.executor.default = save_after
    wake = await harness.book(at=NOON)
    session = await harness.session()
    chat = await harness.node.runs.ask(session.id, harness.user.id, "Hello?")
    await harness.turn()
    harness.clock.step(by)
    if beats:
        assert len(await beat(harness.node.engine.runner.claims)) == 2
    assert await harness.turn() > harness.clock.now(), "the scheduler would turn without a pause"
    await harness.turn_at(harness.clock.now() + 2 * LEASE)
    await harness.let_through(gate)
    [headless] = await harness.runs_of(wake)
    for run in (headless, await harness.run(chat.id)):
        assert (run.status, run.attempt, run.reason) == ("success", 1, None)
    assert len(harness.executor.ran) == 2
    assert await harness.notices() == []


async def test_right_after_a_step_nothing_counts_as_overdue_or_stuck(harness):
    harness.executor.default = harness.gate()
    await harness.book(at=NOON)
    await harness.book(at=NOON + HOUR)
    await harness.turn()
    harness.clock.step(DAY)
    assert (await harness.node.engine.upkeep.audit()).is_good
    harness.clock.advance(MINUTE)
    assert len((await harness.node.engine.upkeep.audit()).overdue_wakes) == 1  # nobody has turned for a minute


async def test_the_time_the_clock_was_set_by_is_not_time_a_low_run_has_waited(harness):
    harness.executor.default = harness.gate()
    for _ in range(3):
        await harness.book(at=NOON)
    await harness.turn()
    low = await harness.book(at=NOON, priority="low")
    await harness.turn()
    harness.clock.step(HOUR)
    await harness.turn()
    assert [run.status for run in await harness.runs_of(low)] == ["queued"]
    await harness.turn_at(NOON + HOUR + 61 * SECOND)
    assert [run.reason for run in await harness.runs_of(low)] == ["no_slot"]


# ── Two nodes ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def another(harness):
    """Another process on the same store, with a run that it holds."""
    node = harness.node
    return Claims(node.store, harness.clock, node.rules, "another", LEASE)


async def hold_one(harness, another):
    wake = await harness.book(at=NOON)
    await harness.node.engine.scheduler.turn()
    await another.claim(1)
    return wake


async def status_of(harness, wake):
    [run] = await harness.runs_of(wake)
    return run.status


@pytest.mark.parametrize("by", STEPS)
async def test_a_step_of_the_common_clock_lets_no_node_take_what_another_is_at_work_on(harness, another, by):
    wake = await hold_one(harness, another)
    harness.clock.step(by)
    until = await harness.node.engine.scheduler.turn()
    assert (await status_of(harness, wake), until > harness.clock.now()) == ("running", True)
    harness.clock.advance(LEASE / 3)
    await beat(another)
    for _ in range(6):
        harness.clock.advance(LEASE / 3)
        await harness.node.engine.scheduler.turn()
        assert await status_of(harness, wake) == "running"
        await beat(another)


@pytest.mark.parametrize("by", STEPS)
async def test_a_dead_nodes_run_is_taken_over_one_lease_after_a_step(harness, another, by):
    wake = await hold_one(harness, another)
    harness.clock.step(by)
    harness.clock.advance(LEASE - SECOND)
    await harness.node.engine.scheduler.turn()
    assert await status_of(harness, wake) == "running"
    harness.clock.advance(SECOND)
    await harness.node.engine.scheduler.turn()
    assert await status_of(harness, wake) == "queued"


async def test_a_step_does_not_make_another_node_look_dead(postgres_url, tmp_path):
    settings = {"database_url": postgres_url, "data_dir": tmp_path / "a", "config_dir": tmp_path}
    harness = Harness(settings)
    other = harness.another_node(data_dir=tmp_path / "b")
    async with harness.node.opened(), other.opened():
        await harness.settle_in()
        for node in (harness.node, other):
            await node.services.directories.arrive()
            await node.services.nodes.arrive()

        async def are_alive():
            since = harness.node.services.directories.alive_since(harness.clock.now())
            return [node.is_alive for node in await harness.node.store.read(lambda tx: tx.nodes.all(since))]

        harness.clock.step(HOUR)
        assert await are_alive() == [True, True]
        harness.clock.advance(LEASE)
        assert await are_alive() == [False, False]
