"""A pause holds wakes: they keep their place, take nobody's room, cost no looking, and go on when it ends."""

import asyncio

import pytest

from wakeful.domain.types import FOREVER
from world import DAY, HOUR, MINUTE, NOON, SECOND, eventually


async def pause(world, until=None, agent=None, *, everything=False):
    await world.node.pauses.pause(world.user.id, None if everything else (agent or world.agent).id, until)


async def resume(world, agent=None, *, everything=False):
    await world.node.pauses.resume(world.user.id, None if everything else (agent or world.agent).id)


def codes(chain):
    return [decision.code for decision in chain]


async def test_a_wake_that_comes_due_in_a_pause_waits_for_its_end(world):
    wake = await world.book(at=NOON + MINUTE)
    await pause(world, until=NOON + 80 * SECOND)
    until = await world.turn_at(NOON + MINUTE)
    held = await world.wake(wake)
    assert (held.status, held.held_by, held.nominal_at) == ("pending", "paused", NOON + MINUTE)
    assert held.attempt_at == until == NOON + 80 * SECOND
    assert await world.runs_of(wake) == []


async def test_it_goes_on_exactly_when_the_pause_ends(world):
    wake = await world.book(at=NOON + MINUTE)
    await pause(world, until=NOON + 10 * MINUTE + 7 * SECOND)
    await world.live_until(NOON + 11 * MINUTE)
    [run] = await world.runs_of(wake)
    assert (run.started_at, run.nominal_at) == (NOON + 10 * MINUTE + 7 * SECOND, NOON + MINUTE)


async def test_while_it_is_held_it_is_not_looked_at_again(world):
    wake = await world.book(at=NOON + MINUTE)
    await pause(world, until=NOON + HOUR)
    await world.turn_at(NOON + MINUTE)
    held = await world.wake(wake)
    for minutes in range(2, 60, 6):
        until = await world.turn_at(NOON + minutes * MINUTE)
        assert until == world.clock.now() + 30 * SECOND
    assert await world.wake(wake) == held
    assert codes(await world.why(wake)) == ["booked", "paused"]


async def test_resuming_early_lets_it_go_at_once(world):
    wake = await world.book(at=NOON + MINUTE)
    await pause(world, until=NOON + DAY)
    await world.turn_at(NOON + MINUTE)
    world.clock.set(NOON + 2 * MINUTE)
    await resume(world)
    await world.turn()
    [run] = await world.runs_of(wake)
    assert (run.status, run.started_at) == ("success", NOON + 2 * MINUTE)


async def test_a_pause_without_end_holds_until_someone_resumes(world):
    wake = await world.book(at=NOON + MINUTE)
    await pause(world)
    await world.turn_at(NOON + MINUTE)
    await world.turn_at(NOON + 400 * DAY)
    assert ((await world.wake(wake)).attempt_at, await world.runs_of(wake)) == (FOREVER, [])
    await resume(world)
    await world.turn()
    assert [run.status for run in await world.runs_of(wake)] == ["success"]


@pytest.mark.parametrize("kind", ["recall", "next_run"])
async def test_a_pause_longer_than_the_grace_does_not_make_a_wake_missed(world, kind):
    wake = await world.book(kind=kind, on_miss="skip", at=NOON + MINUTE)
    await pause(world, until=NOON + DAY)
    await world.turn_at(NOON + MINUTE)
    await world.turn_at(NOON + DAY)
    assert [(run.status, run.reason) for run in await world.runs_of(wake)] == [("success", None)]


async def test_not_even_if_the_engine_slept_through_the_pause(world):
    wake = await world.book(kind="next_run", on_miss="skip", at=NOON + MINUTE)
    await pause(world, until=NOON + DAY)
    await world.turn_at(NOON + DAY + 5 * MINUTE)
    assert [(run.status, run.reason) for run in await world.runs_of(wake)] == [("success", None)]


async def test_the_instants_of_a_recurring_wake_that_a_pause_held_are_one_run(world):
    wake = await world.book(call_type="recurring", every=HOUR, at=NOON + HOUR)
    await pause(world, until=NOON + 5 * HOUR + MINUTE)
    for hours in range(1, 6):
        await world.turn_at(NOON + hours * HOUR)
    await world.turn_at(NOON + 5 * HOUR + MINUTE)
    assert [(run.reason, run.nominal_at, run.covers) for run in await world.runs_of(wake)] == [(None, NOON + HOUR, 5)]
    assert (await world.wake(wake)).nominal_at == NOON + 6 * HOUR


async def test_a_new_pause_takes_the_place_of_the_old_one(world):
    wake = await world.book(at=NOON + MINUTE)
    await pause(world, until=NOON + DAY)
    await world.turn_at(NOON + MINUTE)
    await pause(world, until=NOON + 3 * MINUTE)
    await world.live_until(NOON + 5 * MINUTE)
    assert [run.started_at for run in await world.runs_of(wake)] == [NOON + 3 * MINUTE]


async def test_pausing_everything_holds_every_agent_of_that_user(world):
    other = await world.add_agent()
    mine = [await world.book(at=NOON + MINUTE), await world.book(agent=other, at=NOON + MINUTE)]
    await pause(world, until=NOON + HOUR, everything=True)
    await world.turn_at(NOON + MINUTE)
    assert {(await world.wake(wake)).held_by for wake in mine} == {"paused"}
    await resume(world, everything=True)
    await world.turn()
    assert {(await world.wake(wake)).status for wake in mine} == {"fired"}


async def test_resuming_one_agent_does_not_lift_the_pause_of_everything(world):
    wake = await world.book(at=NOON + MINUTE)
    await pause(world, until=NOON + HOUR, everything=True)
    await world.turn_at(NOON + MINUTE)
    await resume(world)
    await world.turn()
    held = await world.wake(wake)
    assert (held.held_by, held.attempt_at) == ("paused", NOON + HOUR)


async def test_another_users_agents_go_on(world):
    await pause(world, everything=True)
    wake = await world.book(at=NOON + MINUTE)
    await world.sql("INSERT INTO users (id, name, role, created_at) VALUES ('eve', 'Eve', 'user', 0)")
    await world.sql(f"UPDATE wakes SET user_id = 'eve' WHERE id = '{wake.id}'")
    await world.turn_at(NOON + MINUTE)
    assert [ran.run.wake_id for ran in world.executor.ran] == [wake.id]


# ── Runs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_that_is_only_queued_waits_for_the_end_of_the_pause(world):
    wake = await world.book(at=NOON)
    await world.node.engine.scheduler.turn()
    await pause(world, until=NOON + 10 * SECOND)
    assert await world.turn() == NOON + 10 * SECOND
    assert world.executor.ran == []
    await world.turn_at(NOON + 10 * SECOND)
    assert [run.started_at for run in await world.runs_of(wake)] == [NOON + 10 * SECOND]


async def test_resuming_starts_a_queued_run_at_once(world):
    """With the loops running and the clock standing still, only news of the resume can start it."""
    wake = await world.book(at=NOON)
    await world.node.engine.scheduler.turn()
    await pause(world)
    await world.node.engine.start()
    try:
        await asyncio.sleep(0.1)
        assert world.executor.ran == []
        await resume(world)
        [run] = await world.runs_of(wake)
        await eventually(lambda: world.is_over(run))
    finally:
        await world.node.engine.stop()


async def test_a_run_at_work_goes_on_through_a_pause(world):
    wake = await world.book(at=NOON)
    gate = world.executor.by_wake[wake.id] = world.gate()
    await world.turn()
    await pause(world)
    await world.let_through(gate)
    assert [run.status for run in await world.runs_of(wake)] == ["success"]


async def test_a_user_can_talk_to_a_paused_agent(world):
    await pause(world)
    run = await world.node.runs.ask((await world.session()).id, world.user.id, "Are you there?")
    await world.turn()
    assert (await world.run(run.id)).status == "success"


@pytest.mark.parametrize("call_type", ["once", "recurring"])
async def test_run_now_works_while_paused(world, call_type):
    wake = await world.book(call_type=call_type, at=NOON + MINUTE)
    await pause(world)
    await world.turn_at(NOON + MINUTE)
    run = await world.node.wakes.run_now(wake.id, world.user.id)
    await world.turn()
    assert (await world.run(run.id)).status == "success"


async def test_run_now_is_not_stuck_behind_an_occurrence_that_the_pause_holds(world):
    wake = await world.book(call_type="recurring", every=HOUR, at=NOON)
    await world.node.engine.scheduler.turn()  # the occurrence of noon is queued
    await pause(world)
    world.clock.advance(MINUTE)
    extra = await world.node.wakes.run_now(wake.id, world.user.id)
    await world.turn()
    assert [(run.id == extra.id, run.status) for run in await world.runs_of(wake)] == [
        (False, "queued"),
        (True, "success"),
    ]


# ── Room for others ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("when", ["before they are due", "when their runs are queued"])
async def test_four_paused_agents_leave_the_slots_to_the_fifth(world, when):
    assert world.node.settings.max_headless_runs == 3
    paused = [await world.add_agent() for _ in range(4)]
    held = [await world.book(agent=agent, at=NOON) for agent in paused for _ in range(3)]
    if when == "when their runs are queued":
        await world.node.engine.scheduler.turn()
        assert {(await world.wake(wake)).status for wake in held} == {"queued"}
    for agent in paused:
        await pause(world, agent=agent)
    fifth = [await world.book(at=NOON + SECOND) for _ in range(3)]
    await world.turn_at(NOON + SECOND)
    assert {ran.run.wake_id for ran in world.executor.ran} == {wake.id for wake in fifth}
    assert len(world.executor.ran) == 3
