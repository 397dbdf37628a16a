"""A pause holds wakes: they keep their place, take no slot, cost no query, and fire when it ends."""

import asyncio

import pytest

from harness import DAY, HOUR, MINUTE, NOON, SECOND, eventually
from wakeful.core.types import FOREVER

pytestmark = pytest.mark.both_stores


async def pause(harness, until=None, agent=None, *, everything=False):
    await harness.node.pauses.pause(harness.user.id, None if everything else (agent or harness.agent).id, until)


async def resume(harness, agent=None, *, everything=False):
    await harness.node.pauses.resume(harness.user.id, None if everything else (agent or harness.agent).id)


def codes(chain):
    return [decision.code for decision in chain]


async def test_a_wake_that_comes_due_in_a_pause_waits_for_its_end(harness):
    wake = await harness.book(at=NOON + MINUTE)
    await pause(harness, until=NOON + 80 * SECOND)
    until = await harness.turn_at(NOON + MINUTE)
    held = await harness.wake(wake)
    assert (held.status, held.held_by, held.nominal_at) == ("pending", "paused", NOON + MINUTE)
    assert held.attempt_at == until == NOON + 80 * SECOND
    assert await harness.runs_of(wake) == []


async def test_it_goes_on_exactly_when_the_pause_ends(harness):
    wake = await harness.book(at=NOON + MINUTE)
    await pause(harness, until=NOON + 10 * MINUTE + 7 * SECOND)
    await harness.live_until(NOON + 11 * MINUTE)
    [run] = await harness.runs_of(wake)
    assert (run.started_at, run.nominal_at) == (NOON + 10 * MINUTE + 7 * SECOND, NOON + MINUTE)


async def test_while_it_is_held_it_is_not_looked_at_again(harness):
    wake = await harness.book(at=NOON + MINUTE)
    await pause(harness, until=NOON + HOUR)
    await harness.turn_at(NOON + MINUTE)
    held = await harness.wake(wake)
    for minutes in range(2, 60, 6):
        until = await harness.turn_at(NOON + minutes * MINUTE)
        assert until == harness.clock.now() + 30 * SECOND
    assert await harness.wake(wake) == held
    assert codes(await harness.why(wake)) == ["booked", "paused"]


async def test_resuming_early_lets_it_go_at_once(harness):
    wake = await harness.book(at=NOON + MINUTE)
    await pause(harness, until=NOON + DAY)
    await harness.turn_at(NOON + MINUTE)
    harness.clock.set(NOON + 2 * MINUTE)
    await resume(harness)
    await harness.turn()
    [run] = await harness.runs_of(wake)
    assert (run.status, run.started_at) == ("success", NOON + 2 * MINUTE)


async def test_a_pause_without_end_holds_until_someone_resumes(harness):
    wake = await harness.book(at=NOON + MINUTE)
    await pause(harness)
    await harness.turn_at(NOON + MINUTE)
    await harness.turn_at(NOON + 400 * DAY)
    assert ((await harness.wake(wake)).attempt_at, await harness.runs_of(wake)) == (FOREVER, [])
    await resume(harness)
    await harness.turn()
    assert [run.status for run in await harness.runs_of(wake)] == ["success"]


@pytest.mark.parametrize("kind", ["recall", "next_run"])
async def test_a_pause_longer_than_the_grace_does_not_make_a_wake_missed(harness, kind):
    wake = await harness.book(kind=kind, on_miss="skip", at=NOON + MINUTE)
    await pause(harness, until=NOON + DAY)
    await harness.turn_at(NOON + MINUTE)
    await harness.turn_at(NOON + DAY)
    assert [(run.status, run.reason) for run in await harness.runs_of(wake)] == [("success", None)]


async def test_not_even_if_the_engine_slept_through_the_pause(harness):
    wake = await harness.book(kind="next_run", on_miss="skip", at=NOON + MINUTE)
    await pause(harness, until=NOON + DAY)
    await harness.turn_at(NOON + DAY + 5 * MINUTE)
    assert [(run.status, run.reason) for run in await harness.runs_of(wake)] == [("success", None)]


async def test_the_instants_of_a_recurring_wake_that_a_pause_held_are_one_run(harness):
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON + HOUR)
    await pause(harness, until=NOON + 5 * HOUR + MINUTE)
    for hours in range(1, 6):
        await harness.turn_at(NOON + hours * HOUR)
    await harness.turn_at(NOON + 5 * HOUR + MINUTE)
    assert [(run.reason, run.nominal_at, run.covers) for run in await harness.runs_of(wake)] == [(None, NOON + HOUR, 5)]
    assert (await harness.wake(wake)).nominal_at == NOON + 6 * HOUR


async def test_a_new_pause_takes_the_place_of_the_old_one(harness):
    wake = await harness.book(at=NOON + MINUTE)
    await pause(harness, until=NOON + DAY)
    await harness.turn_at(NOON + MINUTE)
    await pause(harness, until=NOON + 3 * MINUTE)
    await harness.live_until(NOON + 5 * MINUTE)
    assert [run.started_at for run in await harness.runs_of(wake)] == [NOON + 3 * MINUTE]


async def test_pausing_everything_holds_every_agent_of_that_user(harness):
    other = await harness.add_agent()
    mine = [await harness.book(at=NOON + MINUTE), await harness.book(agent=other, at=NOON + MINUTE)]
    await pause(harness, until=NOON + HOUR, everything=True)
    await harness.turn_at(NOON + MINUTE)
    assert {(await harness.wake(wake)).held_by for wake in mine} == {"paused"}
    await resume(harness, everything=True)
    await harness.turn()
    assert {(await harness.wake(wake)).status for wake in mine} == {"fired"}


async def test_resuming_one_agent_does_not_lift_the_pause_of_everything(harness):
    wake = await harness.book(at=NOON + MINUTE)
    await pause(harness, until=NOON + HOUR, everything=True)
    await harness.turn_at(NOON + MINUTE)
    await resume(harness)
    await harness.turn()
    held = await harness.wake(wake)
    assert (held.held_by, held.attempt_at) == ("paused", NOON + HOUR)


async def test_another_users_agents_go_on(harness):
    await pause(harness, everything=True)
    wake = await harness.book(at=NOON + MINUTE)
    await harness.sql("INSERT INTO users (id, name, role, created_at) VALUES ('eve', 'Eve', 'user', 0)")
    await harness.sql(f"UPDATE wakes SET user_id = 'eve' WHERE id = '{wake.id}'")
    await harness.turn_at(NOON + MINUTE)
    assert [ran.run.wake_id for ran in harness.executor.ran] == [wake.id]


# ── Runs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_that_is_only_queued_waits_for_the_end_of_the_pause(harness):
    wake = await harness.book(at=NOON)
    await harness.node.engine.scheduler.turn()
    await pause(harness, until=NOON + 10 * SECOND)
    assert await harness.turn() == NOON + 10 * SECOND
    assert harness.executor.ran == []
    await harness.turn_at(NOON + 10 * SECOND)
    assert [run.started_at for run in await harness.runs_of(wake)] == [NOON + 10 * SECOND]


async def test_resuming_starts_a_queued_run_at_once(harness):
    """With the loops running and the clock standing still, only news of the resume can start it."""
    wake = await harness.book(at=NOON)
    await harness.node.engine.scheduler.turn()
    await pause(harness)
    await harness.node.engine.start()
    try:
        await asyncio.sleep(0.1)
        assert harness.executor.ran == []
        await resume(harness)
        [run] = await harness.runs_of(wake)
        await eventually(lambda: harness.is_over(run))
    finally:
        await harness.node.engine.stop()


async def test_a_run_at_work_goes_on_through_a_pause(harness):
    wake = await harness.book(at=NOON)
    gate = harness.executor.by_wake[wake.id] = harness.gate()
    await harness.turn()
    await pause(harness)
    await harness.let_through(gate)
    assert [run.status for run in await harness.runs_of(wake)] == ["success"]


async def test_a_user_can_talk_to_a_paused_agent(harness):
    await pause(harness)
    run = await harness.node.runs.ask((await harness.session()).id, harness.user.id, "Are you there?")
    await harness.turn()
    assert (await harness.run(run.id)).status == "success"


@pytest.mark.parametrize("call_type", ["once", "recurring"])
async def test_run_now_works_while_paused(harness, call_type):
    wake = await harness.book(call_type=call_type, at=NOON + MINUTE)
    await pause(harness)
    await harness.turn_at(NOON + MINUTE)
    run = await harness.node.wakes.run_now(wake.id, harness.user.id)
    await harness.turn()
    assert (await harness.run(run.id)).status == "success"


async def test_run_now_is_not_stuck_behind_an_occurrence_that_the_pause_holds(harness):
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON)
    await harness.node.engine.scheduler.turn()  # the occurrence of noon is queued
    await pause(harness)
    harness.clock.advance(MINUTE)
    extra = await harness.node.wakes.run_now(wake.id, harness.user.id)
    await harness.turn()
    assert [(run.id == extra.id, run.status) for run in await harness.runs_of(wake)] == [
        (False, "queued"),
        (True, "success"),
    ]


# ── Room for others ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("when", ["before they are due", "when their runs are queued"])
async def test_four_paused_agents_leave_the_slots_to_the_fifth(harness, when):
    assert harness.node.settings.max_headless_runs == 3
    paused = [await harness.add_agent() for _ in range(4)]
    held = [await harness.book(agent=agent, at=NOON) for agent in paused for _ in range(3)]
    if when == "when their runs are queued":
        await harness.node.engine.scheduler.turn()
        assert {(await harness.wake(wake)).status for wake in held} == {"queued"}
    for agent in paused:
        await pause(harness, agent=agent)
    fifth = [await harness.book(at=NOON + SECOND) for _ in range(3)]
    await harness.turn_at(NOON + SECOND)
    assert {ran.run.wake_id for ran in harness.executor.ran} == {wake.id for wake in fifth}
    assert len(harness.executor.ran) == 3
