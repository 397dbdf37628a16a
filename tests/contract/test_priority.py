"""Low priority gives way, and says so: to a user in the middle of a conversation, and when no slot is free."""

import pytest

from world import HOUR, MINUTE, NOON, SECOND


@pytest.fixture
def backend_settings(backend_settings):
    """Nobody renews leases here, and some runs are at work for a while."""
    return backend_settings | {"lease_seconds": 3600}


async def book_low(world, at=NOON, **request):
    return await world.book(at=at, priority="low", **({"kind": "next_run", "scheduled_by": "agent"} | request))


async def told(world, wake):
    ended = await world.wake(wake)
    return ended.status, ended.reason, [(run.status, run.reason) for run in await world.runs_of(wake)]


async def occupy_all_slots(world):
    """Let three runs of another agent take the three slots; returns their gate."""
    other = await world.add_agent()
    gate = world.gate()
    for _ in range(3):
        wake = await world.book(agent=other, at=world.clock.now())
        world.executor.by_wake[wake.id] = gate
    await world.turn()
    assert world.node.engine.runner.active == 3
    return gate


# ── A user in conversation ──────────────────────────────────────────────────────────────────────────────────────────


async def test_it_is_skipped_while_a_user_run_is_live(world):
    wake = await book_low(world, NOON + HOUR)
    async with world.talking(await world.session()):
        await world.turn_at(NOON + HOUR)
    assert await told(world, wake) == ("skipped", "user_active", [("skipped", "user_active")])


@pytest.mark.parametrize(("ago", "status"), [(119 * SECOND, "skipped"), (2 * MINUTE, "fired")])
async def test_it_is_skipped_within_two_minutes_of_a_users_message(world, ago, status):
    await world.node.runs.ask((await world.session()).id, world.user.id, "Thanks!")
    await world.work()
    wake = await book_low(world, NOON + ago)
    await world.turn_at(NOON + ago)
    assert (await world.wake(wake)).status == status


async def test_a_conversation_with_another_agent_does_not_count(world):
    other = await world.add_agent()
    wake = await book_low(world)
    async with world.talking(await world.session(other)):
        await world.turn()
    assert (await world.wake(wake)).status == "fired"


async def test_normal_priority_runs_beside_the_conversation(world):
    wake = await world.book(kind="next_run", at=NOON)
    async with world.talking(await world.session()):
        await world.turn()
    assert (await world.wake(wake)).status == "fired"


async def test_a_recurring_wake_of_low_priority_leaves_out_that_occurrence_only(world):
    wake = await book_low(world, kind="recall", scheduled_by="user", call_type="recurring", every=HOUR)
    async with world.talking(await world.session()):
        await world.turn()
    await world.turn_at(NOON + HOUR)
    assert [(run.status, run.reason) for run in await world.runs_of(wake)] == [
        ("skipped", "user_active"),
        ("success", None),
    ]


# ── No slot ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_it_is_skipped_when_no_slot_was_free_for_a_minute(world):
    gate = await occupy_all_slots(world)
    wake = await book_low(world)
    await world.turn()
    await world.turn_at(NOON + MINUTE - SECOND)
    assert (await world.wake(wake)).status == "queued"
    await world.turn_at(NOON + MINUTE)
    assert await told(world, wake) == ("skipped", "no_slot", [("skipped", "no_slot")])
    await world.let_through(gate)


async def test_the_scheduler_wakes_for_that_moment(world):
    gate = await occupy_all_slots(world)
    await book_low(world)
    await world.turn()
    assert await world.turn_at(NOON + 40 * SECOND) == NOON + MINUTE
    await world.let_through(gate)


async def test_it_runs_if_a_slot_comes_free_in_time(world):
    gate = await occupy_all_slots(world)
    wake = await book_low(world)
    await world.turn()
    world.clock.set(NOON + MINUTE - SECOND)
    await world.let_through(gate)
    await world.turn()
    assert (await world.wake(wake)).status == "fired"


async def test_normal_priority_waits_for_a_slot_as_long_as_it_takes(world):
    gate = await occupy_all_slots(world)
    wake = await world.book(kind="next_run", at=NOON)
    await world.turn()
    await world.turn_at(NOON + 30 * MINUTE)
    await world.let_through(gate)
    await world.turn()
    assert (await world.wake(wake)).status == "fired"


# ── What is no lack of slots ────────────────────────────────────────────────────────────────────────────────────────


async def test_waiting_for_its_session_is_no_lack_of_slots(world):
    session = await world.session()
    wake = await book_low(world, kind="message", session=session)
    await world.node.engine.scheduler.turn()
    other = await world.book(kind="message", session=session, at=NOON - SECOND)
    gate = world.executor.by_wake[other.id] = world.gate()
    await world.sql(f"UPDATE runs SET nominal_at = nominal_at + 1000000 WHERE wake_id = '{wake.id}'")
    await world.turn()
    assert ((await world.wake(other)).status, (await world.wake(wake)).status) == ("running", "queued")
    await world.turn_at(NOON + 5 * MINUTE)
    await world.let_through(gate)
    await world.turn()
    assert (await world.wake(wake)).status == "fired"


async def test_waiting_for_its_session_does_not_keep_the_scheduler_spinning(world):
    session = await world.session()
    wake = await book_low(world, kind="message", session=session)
    await world.node.engine.scheduler.turn()
    async with world.talking(session):
        assert (await world.wake(wake)).status == "queued"
        assert await world.turn_at(NOON + 5 * MINUTE) > NOON + 5 * MINUTE


async def test_a_pause_is_no_lack_of_slots_nor_a_reason_to_spin(world):
    wake = await book_low(world)
    await world.node.engine.scheduler.turn()
    await world.node.pauses.pause(world.user.id, world.agent.id, NOON + HOUR)
    assert await world.turn_at(NOON + 5 * MINUTE) > NOON + 5 * MINUTE
    await world.turn_at(NOON + HOUR)
    assert (await world.wake(wake)).status == "fired"


async def test_time_in_which_the_engine_was_down_is_no_lack_of_slots(world):
    wake = await book_low(world)
    await world.node.engine.scheduler.turn()
    await world.turn_at(NOON + 10 * MINUTE)
    assert (await world.wake(wake)).status == "fired"


async def test_a_run_that_a_crash_cut_off_waits_for_a_slot_as_long_as_it_takes(world):
    """It had its slot; what it did until then is not thrown away."""
    wake = await book_low(world)
    world.executor.by_wake[wake.id] = world.gate()
    await world.turn()
    await world.crash()
    del world.executor.by_wake[wake.id]
    world.clock.set(NOON + 30 * MINUTE)
    gate = await occupy_all_slots(world)
    await world.turn_at(NOON + HOUR)
    assert (await world.runs_of(wake))[0].status == "queued"
    await world.let_through(gate)
    await world.work()
    assert await told(world, wake) == ("fired", None, [("success", "resumed")])


async def test_a_run_that_a_crash_cut_off_is_taken_up_again_and_not_shed(world):
    wake = await book_low(world)
    world.executor.by_wake[wake.id] = world.gate()
    await world.turn()
    await world.crash()
    del world.executor.by_wake[wake.id]
    await world.turn_at(NOON + 2 * HOUR)
    assert await told(world, wake) == ("fired", None, [("success", "resumed")])
