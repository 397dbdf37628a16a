"""Low priority gives way, and says so: to a user in the middle of a conversation, and when no slot is free."""

import pytest

from harness import HOUR, MINUTE, NOON, SECOND

pytestmark = pytest.mark.both_stores


@pytest.fixture
def backend_settings(backend_settings):
    """Leases are not renewed here, and some runs execute for a while."""
    return backend_settings | {"lease_seconds": 3600}


async def book_low(harness, at=NOON, **request):
    return await harness.book(at=at, priority="low", **({"kind": "next_run", "scheduled_by": "agent"} | request))


async def told(harness, wake):
    ended = await harness.wake(wake)
    return ended.status, ended.reason, [(run.status, run.reason) for run in await harness.runs_of(wake)]


async def occupy_all_slots(harness):
    """Let three runs of another agent take the three slots; returns their gate."""
    other = await harness.add_agent()
    gate = harness.gate()
    for _ in range(3):
        wake = await harness.book(agent=other, at=harness.clock.now())
        harness.executor.by_wake[wake.id] = gate
    await harness.turn()
    assert harness.node.engine.runner.active == 3
    return gate


# ── A user in conversation ──────────────────────────────────────────────────────────────────────────────────────────


async def test_it_is_skipped_while_a_user_run_is_live(harness):
    wake = await book_low(harness, NOON + HOUR)
    async with harness.talking(await harness.session()):
        await harness.turn_at(NOON + HOUR)
    assert await told(harness, wake) == ("skipped", "user_active", [("skipped", "user_active")])


@pytest.mark.parametrize(("ago", "status"), [(119 * SECOND, "skipped"), (2 * MINUTE, "fired")])
async def test_it_is_skipped_within_two_minutes_of_a_users_message(harness, ago, status):
    await harness.node.runs.ask((await harness.session()).id, harness.user.id, "Thanks!")
    await harness.work()
    wake = await book_low(harness, NOON + ago)
    await harness.turn_at(NOON + ago)
    assert (await harness.wake(wake)).status == status


async def test_a_conversation_with_another_agent_does_not_count(harness):
    other = await harness.add_agent()
    wake = await book_low(harness)
    async with harness.talking(await harness.session(other)):
        await harness.turn()
    assert (await harness.wake(wake)).status == "fired"


async def test_normal_priority_runs_beside_the_conversation(harness):
    wake = await harness.book(kind="next_run", at=NOON)
    async with harness.talking(await harness.session()):
        await harness.turn()
    assert (await harness.wake(wake)).status == "fired"


async def test_a_recurring_wake_of_low_priority_leaves_out_that_occurrence_only(harness):
    wake = await book_low(harness, kind="recall", scheduled_by="user", call_type="recurring", every=HOUR)
    async with harness.talking(await harness.session()):
        await harness.turn()
    await harness.turn_at(NOON + HOUR)
    assert [(run.status, run.reason) for run in await harness.runs_of(wake)] == [
        ("skipped", "user_active"),
        ("success", None),
    ]


# ── No slot ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_it_is_skipped_when_no_slot_was_free_for_a_minute(harness):
    gate = await occupy_all_slots(harness)
    wake = await book_low(harness)
    await harness.turn()
    await harness.turn_at(NOON + MINUTE - SECOND)
    assert (await harness.wake(wake)).status == "queued"
    await harness.turn_at(NOON + MINUTE)
    assert await told(harness, wake) == ("skipped", "no_slot", [("skipped", "no_slot")])
    await harness.let_through(gate)


async def test_the_scheduler_wakes_for_that_moment(harness):
    gate = await occupy_all_slots(harness)
    await book_low(harness)
    await harness.turn()
    assert await harness.turn_at(NOON + 40 * SECOND) == NOON + MINUTE
    await harness.let_through(gate)


async def test_it_runs_if_a_slot_comes_free_in_time(harness):
    gate = await occupy_all_slots(harness)
    wake = await book_low(harness)
    await harness.turn()
    harness.clock.set(NOON + MINUTE - SECOND)
    await harness.let_through(gate)
    await harness.turn()
    assert (await harness.wake(wake)).status == "fired"


async def test_normal_priority_waits_for_a_slot_as_long_as_it_takes(harness):
    gate = await occupy_all_slots(harness)
    wake = await harness.book(kind="next_run", at=NOON)
    await harness.turn()
    await harness.turn_at(NOON + 30 * MINUTE)
    await harness.let_through(gate)
    await harness.turn()
    assert (await harness.wake(wake)).status == "fired"


# ── Not for lack of slots ───────────────────────────────────────────────────────────────────────────────────────────


async def test_waiting_for_its_session_is_no_lack_of_slots(harness):
    session = await harness.session()
    wake = await book_low(harness, kind="message", session=session)
    await harness.node.engine.scheduler.turn()
    other = await harness.book(kind="message", session=session, at=NOON - SECOND)
    gate = harness.executor.by_wake[other.id] = harness.gate()
    await harness.sql(f"UPDATE runs SET nominal_at = nominal_at + 1000000 WHERE wake_id = '{wake.id}'")
    await harness.turn()
    assert ((await harness.wake(other)).status, (await harness.wake(wake)).status) == ("running", "queued")
    await harness.turn_at(NOON + 5 * MINUTE)
    await harness.let_through(gate)
    await harness.turn()
    assert (await harness.wake(wake)).status == "fired"


async def test_waiting_for_its_session_does_not_keep_the_scheduler_spinning(harness):
    session = await harness.session()
    wake = await book_low(harness, kind="message", session=session)
    await harness.node.engine.scheduler.turn()
    async with harness.talking(session):
        assert (await harness.wake(wake)).status == "queued"
        assert await harness.turn_at(NOON + 5 * MINUTE) > NOON + 5 * MINUTE


async def test_a_pause_is_no_lack_of_slots_nor_a_reason_to_spin(harness):
    wake = await book_low(harness)
    await harness.node.engine.scheduler.turn()
    await harness.node.pauses.pause(harness.user.id, harness.agent.id, NOON + HOUR)
    assert await harness.turn_at(NOON + 5 * MINUTE) > NOON + 5 * MINUTE
    await harness.turn_at(NOON + HOUR)
    assert (await harness.wake(wake)).status == "fired"


async def test_time_in_which_the_engine_was_down_is_no_lack_of_slots(harness):
    wake = await book_low(harness)
    await harness.node.engine.scheduler.turn()
    await harness.turn_at(NOON + 10 * MINUTE)
    assert (await harness.wake(wake)).status == "fired"


async def test_a_run_that_a_crash_cut_off_waits_for_a_slot_as_long_as_it_takes(harness):
    """It had its slot; what it did until then is not thrown away."""
    wake = await book_low(harness)
    harness.executor.by_wake[wake.id] = harness.gate()
    await harness.turn()
    await harness.crash()
    del harness.executor.by_wake[wake.id]
    harness.clock.set(NOON + 30 * MINUTE)
    gate = await occupy_all_slots(harness)
    await harness.turn_at(NOON + HOUR)
    assert (await harness.runs_of(wake))[0].status == "queued"
    await harness.let_through(gate)
    await harness.work()
    assert await told(harness, wake) == ("fired", None, [("success", "resumed")])


async def test_a_run_that_a_crash_cut_off_is_taken_up_again_and_not_shed(harness):
    wake = await book_low(harness)
    harness.executor.by_wake[wake.id] = harness.gate()
    await harness.turn()
    await harness.crash()
    del harness.executor.by_wake[wake.id]
    await harness.turn_at(NOON + 2 * HOUR)
    assert await told(harness, wake) == ("fired", None, [("success", "resumed")])
