"""The runner takes runs out of the queue: so many at a time, one per session, in turn between agents."""

import asyncio
import json
import math

import pytest

from wakeful.domain.events import StepSaved, ToolStarted
from wakeful.service.wakes.firing import Firing
from world import DAY, MINUTE, NOON, SECOND, doing


@pytest.fixture
def backend_settings(backend_settings):
    """Nobody renews leases here, and some runs are at work for a while."""
    return backend_settings | {"lease_seconds": 3600}


def agents_in_order(world):
    return [ran.run.agent_id for ran in world.executor.ran]


# ── Slots ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_node_has_so_many_headless_runs_at_work_and_no_more(world):
    gate = world.executor.default = world.gate()
    for _ in range(7):
        await world.book(at=NOON)
    await world.turn()
    await world.turn()
    assert (world.node.engine.runner.active, len(world.executor.ran)) == (3, 3)
    world.executor.default = None
    await world.let_through(gate)
    await world.work()
    assert len(world.executor.ran) == 7


async def test_a_slot_that_comes_free_is_filled_without_waiting_for_the_others(world):
    gate = world.gate()
    wakes = [await world.book(at=NOON + number * SECOND) for number in range(6)]
    for wake in wakes[:2]:
        world.executor.by_wake[wake.id] = gate
    await world.turn_at(NOON + MINUTE)
    assert len(world.executor.ran) == 6
    assert world.node.engine.runner.active == 2
    await world.let_through(gate)


async def test_a_session_has_one_run_at_work(world):
    session = await world.session()
    gate = world.executor.default = world.gate()
    wakes = [await world.book(kind="message", session=session, at=NOON) for _ in range(3)]
    await world.turn()
    assert sorted([(await world.wake(wake)).status for wake in wakes]) == ["queued", "queued", "running"]
    world.executor.default = None
    await world.let_through(gate)
    await world.work()
    assert {(await world.wake(wake)).status for wake in wakes} == {"fired"}


async def test_a_session_that_is_busy_keeps_no_slot_from_others(world):
    """Ten messages wait behind the one at work in their session; a wake elsewhere, planned later, goes ahead."""
    session = await world.session()
    gate = world.gate()
    first = await world.book(kind="message", session=session, at=NOON)
    world.executor.by_wake[first.id] = gate
    for _ in range(10):
        await world.book(kind="message", session=session, at=NOON + SECOND)
    elsewhere = await world.book(at=NOON + MINUTE)
    await world.turn()
    await world.turn_at(NOON + MINUTE)
    assert (await world.wake(elsewhere)).status == "fired"
    await world.let_through(gate)


# ── Turns ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_agent_with_one_run_does_not_wait_for_all_of_another_agents(world):
    other = await world.add_agent()
    for number in range(10):
        await world.book(at=NOON + number * SECOND)
    await world.book(agent=other, at=NOON + 20 * SECOND)
    world.clock.set(NOON + MINUTE)
    await world.node.engine.scheduler.turn()
    await world.work()
    assert agents_in_order(world).index(other.id) < 3


async def test_two_agents_with_many_runs_take_turns(world):
    other = await world.add_agent()
    for _ in range(6):
        await world.book(at=NOON)
    for _ in range(6):
        await world.book(agent=other, at=NOON + SECOND)
    world.clock.set(NOON + MINUTE)
    await world.node.engine.scheduler.turn()
    await world.work()
    first_half = agents_in_order(world)[:6]
    assert first_half.count(other.id) in (2, 3, 4)


async def test_an_agent_that_comes_later_gets_the_next_free_slot(world):
    """Agent A holds all slots and has ten more waiting; B books after them, and is next."""
    other = await world.add_agent()
    gate = world.executor.default = world.gate()
    for _ in range(13):
        await world.book(at=NOON)
    await world.turn()
    await world.book(agent=other, at=NOON + MINUTE)
    await world.turn_at(NOON + MINUTE)
    world.executor.default = None
    await world.let_through(gate)
    await world.work()
    assert agents_in_order(world).index(other.id) in (3, 4, 5)


async def test_what_comes_into_an_empty_queue_comes_in_where_it_stands(world):
    """Agent A holds all three slots, then books four more with nobody waiting; B, who is last, gets one of the next."""
    other = await world.add_agent()
    gate = world.executor.default = world.gate()
    for number in (0, 0, 0, 1, 1, 1, 1):
        await world.book(at=NOON + number * MINUTE)
    await world.book(agent=other, at=NOON + 2 * MINUTE)
    for number in range(3):
        await world.turn_at(NOON + number * MINUTE)
    world.executor.default = None
    await world.let_through(gate)
    await world.work()
    assert agents_in_order(world).index(other.id) in (3, 4, 5)


async def test_runs_of_one_agent_begin_in_the_order_of_their_instants(world):
    wakes = [await world.book(kind="session", at=NOON + number * SECOND) for number in (3, 1, 2, 5, 4)]
    await world.turn_at(NOON + MINUTE)
    expected = sorted(wakes, key=lambda wake: wake.nominal_at)
    assert [ran.run.wake_id for ran in world.executor.ran] == [wake.id for wake in expected]


# ── What a run leaves behind ────────────────────────────────────────────────────────────────────────────────────────


async def test_steps_are_saved_in_order_as_the_executor_says_them(world):
    wake = await world.book(at=NOON)
    seen = []

    async def speak(run, steps, stop):
        for text in ("Reading", "Read", "Done"):
            yield StepSaved(role="assistant", content=text)
            saved = await world.node.store.read(lambda tx: tx.sessions.steps_of(run.id))
            seen.append([step.content for step in saved])  # durable before it is asked for more

    world.executor.by_wake[wake.id] = speak
    await world.turn()
    assert seen == [["Reading"], ["Reading", "Read"], ["Reading", "Read", "Done"]]


async def test_frames_are_saved_with_growing_numbers(world):
    wake = await world.book(at=NOON)

    async def stream(run, steps, stop):
        for number in range(3):
            yield ToolStarted(tool="read_file", args={"n": number}, call_id="c")

    world.executor.by_wake[wake.id] = stream
    await world.turn()
    [run] = await world.runs_of(wake)
    frames = await world.node.stream.after(run.session_id, 0)
    assert [frame.seq for frame in frames] == [1, 2, 3]
    said = [json.loads(frame.text) for frame in frames]
    assert [(each["seq"], each["args"]["n"], each["run_id"]) for each in said] == [
        (1, 0, run.id),
        (2, 1, run.id),
        (3, 2, run.id),
    ]


async def test_an_executor_is_closed_when_its_run_is_cut_off(world):
    wake = await world.book(at=NOON)
    closed = []
    gate = world.gate()

    async def work(run, steps, stop):
        try:
            async for event in gate(run, steps, stop):
                yield event
        finally:
            closed.append(run.id)

    world.executor.by_wake[wake.id] = work
    await world.turn()
    await world.crash()
    assert len(closed) == 1


async def test_a_run_that_another_node_took_back_and_its_own_node_claims_again_is_carried_out_once_more(world):
    """A node suspended in the middle of a run: the old execution is dropped, the new one counts."""
    wake = await world.book(at=NOON)
    dropped = []

    async def hang(run):
        try:
            await asyncio.sleep(60)
        finally:
            dropped.append(run.fence)

    world.executor.by_wake[wake.id] = doing(hang)
    await world.node.engine.scheduler.turn()
    await world.node.engine.runner.turn()
    await asyncio.sleep(0.05)
    del world.executor.by_wake[wake.id]
    world.clock.set(NOON + DAY)
    node = world.node
    await Firing(node.store, node.stream, world.clock, node.rules, "another node").recover()
    async with asyncio.timeout(5):
        await world.turn()
    [run] = await world.runs_of(wake)
    assert (run.status, run.attempt, run.fence) == ("success", 2, 2)
    assert (dropped, world.node.engine.runner.active) == ([1], 0)


async def test_a_lease_that_the_heartbeat_renews_after_its_run_was_dropped_does_not_keep_the_run_for_ever(world):
    wake = await world.book(at=NOON)
    world.executor.by_wake[wake.id] = world.gate()
    await world.turn()
    runner, claims = world.node.engine.runner, world.node.engine.runner._claims
    runner.compare(math.inf, set())
    await runner.idle()
    heartbeat = await claims.open_heartbeat()
    ours = await claims.renew(heartbeat)
    await heartbeat.close()
    assert len(ours) == 1
    runner.compare(0.0, ours)
    del world.executor.by_wake[wake.id]
    await world.work()
    assert [run.status for run in await world.runs_of(wake)] == ["running"]  # it might be one that was just claimed
    runner.compare(0.0, ours)
    await world.work()
    assert [(run.status, run.attempt, run.fence) for run in await world.runs_of(wake)] == [("success", 1, 2)]
