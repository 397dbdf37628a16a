"""The runner takes runs out of the queue: a limited number at a time, one per session, in turn between agents."""

import asyncio
import json
import math

import pytest

from harness import DAY, MINUTE, NOON, SECOND, doing
from wakeful.core.events import StepSaved, ToolStarted
from wakeful.wakes.firing import Firing

pytestmark = pytest.mark.both_stores


@pytest.fixture
def backend_settings(backend_settings):
    """Leases are not renewed here, and some runs execute for a while."""
    return backend_settings | {"lease_seconds": 3600}


def agents_in_order(harness):
    return [ran.run.agent_id for ran in harness.executor.ran]


# ── Slots ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_node_has_so_many_headless_runs_at_work_and_no_more(harness):
    gate = harness.executor.default = harness.gate()
    for _ in range(7):
        await harness.book(at=NOON)
    await harness.turn()
    await harness.turn()
    assert (harness.node.engine.runner.active, len(harness.executor.ran)) == (3, 3)
    harness.executor.default = None
    await harness.let_through(gate)
    await harness.work()
    assert len(harness.executor.ran) == 7


async def test_a_slot_that_comes_free_is_filled_without_waiting_for_the_others(harness):
    gate = harness.gate()
    wakes = [await harness.book(at=NOON + number * SECOND) for number in range(6)]
    for wake in wakes[:2]:
        harness.executor.by_wake[wake.id] = gate
    await harness.turn_at(NOON + MINUTE)
    assert len(harness.executor.ran) == 6
    assert harness.node.engine.runner.active == 2
    await harness.let_through(gate)


async def test_a_session_has_one_run_at_work(harness):
    session = await harness.session()
    gate = harness.executor.default = harness.gate()
    wakes = [await harness.book(kind="message", session=session, at=NOON) for _ in range(3)]
    await harness.turn()
    assert sorted([(await harness.wake(wake)).status for wake in wakes]) == ["queued", "queued", "running"]
    harness.executor.default = None
    await harness.let_through(gate)
    await harness.work()
    assert {(await harness.wake(wake)).status for wake in wakes} == {"fired"}


async def test_a_session_that_is_busy_keeps_no_slot_from_others(harness):
    """Ten messages wait behind a run in their session; a wake of another session, planned later, goes first."""
    session = await harness.session()
    gate = harness.gate()
    first = await harness.book(kind="message", session=session, at=NOON)
    harness.executor.by_wake[first.id] = gate
    for _ in range(10):
        await harness.book(kind="message", session=session, at=NOON + SECOND)
    elsewhere = await harness.book(at=NOON + MINUTE)
    await harness.turn()
    await harness.turn_at(NOON + MINUTE)
    assert (await harness.wake(elsewhere)).status == "fired"
    await harness.let_through(gate)


# ── Turns ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_agent_with_one_run_does_not_wait_for_all_of_another_agents(harness):
    other = await harness.add_agent()
    for number in range(10):
        await harness.book(at=NOON + number * SECOND)
    await harness.book(agent=other, at=NOON + 20 * SECOND)
    harness.clock.set(NOON + MINUTE)
    await harness.node.engine.scheduler.turn()
    await harness.work()
    assert agents_in_order(harness).index(other.id) < 3


async def test_two_agents_with_many_runs_take_turns(harness):
    other = await harness.add_agent()
    for _ in range(6):
        await harness.book(at=NOON)
    for _ in range(6):
        await harness.book(agent=other, at=NOON + SECOND)
    harness.clock.set(NOON + MINUTE)
    await harness.node.engine.scheduler.turn()
    await harness.work()
    first_half = agents_in_order(harness)[:6]
    assert first_half.count(other.id) in (2, 3, 4)


async def test_an_agent_that_comes_later_gets_the_next_free_slot(harness):
    """Agent A holds all slots and has ten more waiting; B books after them, and is next."""
    other = await harness.add_agent()
    gate = harness.executor.default = harness.gate()
    for _ in range(13):
        await harness.book(at=NOON)
    await harness.turn()
    await harness.book(agent=other, at=NOON + MINUTE)
    await harness.turn_at(NOON + MINUTE)
    harness.executor.default = None
    await harness.let_through(gate)
    await harness.work()
    assert agents_in_order(harness).index(other.id) in (3, 4, 5)


async def test_what_comes_into_an_empty_queue_comes_in_where_it_stands(harness):
    """Agent A holds all three slots, then books four more with nobody waiting; B, who is last, gets one of the next."""
    other = await harness.add_agent()
    gate = harness.executor.default = harness.gate()
    for number in (0, 0, 0, 1, 1, 1, 1):
        await harness.book(at=NOON + number * MINUTE)
    await harness.book(agent=other, at=NOON + 2 * MINUTE)
    for number in range(3):
        await harness.turn_at(NOON + number * MINUTE)
    harness.executor.default = None
    await harness.let_through(gate)
    await harness.work()
    assert agents_in_order(harness).index(other.id) in (3, 4, 5)


async def test_runs_of_one_agent_begin_in_the_order_of_their_instants(harness):
    wakes = [await harness.book(kind="session", at=NOON + number * SECOND) for number in (3, 1, 2, 5, 4)]
    await harness.turn_at(NOON + MINUTE)
    expected = sorted(wakes, key=lambda wake: wake.nominal_at)
    assert [ran.run.wake_id for ran in harness.executor.ran] == [wake.id for wake in expected]


# ── What a run leaves behind ────────────────────────────────────────────────────────────────────────────────────────


async def test_steps_are_saved_in_order_as_the_executor_says_them(harness):
    wake = await harness.book(at=NOON)
    seen = []

    async def speak(run, steps, stop):
        for text in ("Reading", "Read", "Done"):
            yield StepSaved(role="assistant", content=text)
            saved = await harness.node.store.read(lambda tx: tx.sessions.steps_of(run.id))
            seen.append([step.content for step in saved])  # durable before it is asked for more

    harness.executor.by_wake[wake.id] = speak
    await harness.turn()
    assert seen == [["Reading"], ["Reading", "Read"], ["Reading", "Read", "Done"]]


async def test_frames_are_saved_with_growing_numbers(harness):
    wake = await harness.book(at=NOON)

    async def stream(run, steps, stop):
        for number in range(3):
            yield ToolStarted(tool="read_file", args={"n": number}, call_id="c")

    harness.executor.by_wake[wake.id] = stream
    await harness.turn()
    [run] = await harness.runs_of(wake)
    booked, *frames = await harness.node.stream.after(run.session_id, 0)
    assert [frame.seq for frame in (booked, *frames)] == [1, 2, 3, 4]
    said = [json.loads(frame.text) for frame in frames]
    assert [(each["seq"], each["args"]["n"], each["run_id"]) for each in said] == [
        (2, 0, run.id),
        (3, 1, run.id),
        (4, 2, run.id),
    ]


async def test_an_executor_is_closed_when_its_run_is_cut_off(harness):
    wake = await harness.book(at=NOON)
    closed = []
    gate = harness.gate()

    async def work(run, steps, stop):
        try:
            async for event in gate(run, steps, stop):
                yield event
        finally:
            closed.append(run.id)

    harness.executor.by_wake[wake.id] = work
    await harness.turn()
    await harness.crash()
    assert len(closed) == 1


async def test_a_run_that_another_node_took_back_and_its_own_node_claims_again_is_carried_out_once_more(harness):
    """A node suspended in the middle of a run: the old execution is dropped, the new one counts."""
    wake = await harness.book(at=NOON)
    has_begun, dropped = asyncio.Event(), []

    async def hang(run):
        has_begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            dropped.append(run.fence)

    harness.executor.by_wake[wake.id] = doing(hang)
    await harness.node.engine.scheduler.turn()
    await harness.node.engine.runner.turn()
    await has_begun.wait()
    del harness.executor.by_wake[wake.id]
    harness.clock.set(NOON + DAY)
    node = harness.node
    await Firing(node.store, harness.clock, node.rules, "another node").recover()
    async with asyncio.timeout(5):
        await harness.turn()
    [run] = await harness.runs_of(wake)
    assert (run.status, run.attempt, run.fence) == ("success", 2, 2)
    assert (dropped, harness.node.engine.runner.active) == ([1], 0)


async def test_a_lease_that_the_heartbeat_renews_after_its_run_was_dropped_does_not_keep_the_run_for_ever(harness):
    wake = await harness.book(at=NOON)
    harness.executor.by_wake[wake.id] = harness.gate()
    await harness.turn()
    runner, claims = harness.node.engine.runner, harness.node.engine.runner.claims
    runner.compare(math.inf, set())
    await runner.idle()
    heartbeat = await claims.open_heartbeat()
    ours = await claims.renew(heartbeat)
    await heartbeat.close()
    assert len(ours) == 1
    runner.compare(0.0, ours)
    del harness.executor.by_wake[wake.id]
    await harness.work()
    assert [run.status for run in await harness.runs_of(wake)] == ["running"]  # it might be one that was just claimed
    runner.compare(0.0, ours)
    await harness.work()
    assert [(run.status, run.attempt, run.fence) for run in await harness.runs_of(wake)] == [("success", 1, 2)]
