"""Bounds and the runaway brake when a wake is due: it waits for the first allowed instant."""

from dataclasses import replace
from datetime import UTC, datetime, time

import pytest

from harness import DAY, HOUR, MINUTE, NOON, SECOND, doing
from wakeful.timing.bounds import PRESETS

pytestmark = pytest.mark.both_stores

BRAKE = 5  # runs an hour, instead of sixty
MIDNIGHT_IN_BERLIN = datetime(2026, 3, 2, 23, tzinfo=UTC)


@pytest.fixture
def backend_settings(backend_settings):
    return backend_settings | {"runs_per_hour": BRAKE}


async def set_bounds(harness, **changes):
    bounds = replace(PRESETS["reactive"], **changes)
    await harness.node.agents.change(harness.agent.id, harness.user, lambda _: {"bounds": bounds})


async def book_next_run(harness, at, **request):
    return await harness.book(kind="next_run", at=at, **({"scheduled_by": "agent"} | request))


async def told(harness, wake):
    return [(run.status, run.reason, run.started_at) for run in await harness.runs_of(wake)]


# ── Quiet hours and days ────────────────────────────────────────────────────────────────────────────────────────────


async def test_quiet_hours_set_after_the_booking_hold_it(harness):
    """Two in the afternoon in Berlin is 13:00 UTC; quiet until half past three there."""
    wake = await book_next_run(harness, NOON + HOUR)
    await set_bounds(harness, quiet_from=time(13, 30), quiet_to=time(15, 30))
    await harness.turn_at(NOON + HOUR)
    held = await harness.wake(wake)
    assert (held.status, held.held_by, held.attempt_at) == ("pending", "quiet_hours", NOON + 2.5 * HOUR)
    await harness.turn_at(NOON + 2.5 * HOUR)
    assert await told(harness, wake) == [("success", None, NOON + 2.5 * HOUR)]


async def test_a_wake_found_late_in_quiet_hours_waits_for_the_morning_and_is_not_missed(harness):
    """Planned for a minute before ten in the evening; the machine woke a minute after."""
    await set_bounds(harness, quiet_from=time(22), quiet_to=time(7))
    wake = await book_next_run(harness, datetime(2026, 3, 2, 20, 59, tzinfo=UTC))
    await harness.turn_at(datetime(2026, 3, 2, 21, 1, tzinfo=UTC))
    morning = datetime(2026, 3, 3, 6, tzinfo=UTC)
    await harness.turn_at(morning)
    assert await told(harness, wake) == [("success", None, morning)]


async def test_a_day_that_is_not_allowed_holds_until_midnight_in_the_agents_zone(harness):
    wake = await book_next_run(harness, NOON + HOUR)
    await set_bounds(harness, days=frozenset({1, 2}))
    await harness.turn_at(NOON + HOUR)
    assert (await harness.wake(wake)).held_by == "day_not_allowed"
    await harness.turn_at(MIDNIGHT_IN_BERLIN)
    assert await told(harness, wake) == [("success", None, MIDNIGHT_IN_BERLIN)]


async def test_bounds_that_are_widened_let_go_at_once(harness):
    await set_bounds(harness, quiet_from=time(13), quiet_to=time(20))
    wake = await book_next_run(harness, NOON + HOUR)
    await harness.turn_at(NOON + HOUR)
    harness.clock.advance(MINUTE)
    await set_bounds(harness)
    await harness.turn()
    assert await told(harness, wake) == [("success", None, NOON + 61 * MINUTE)]


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param({"kind": "next_run", "scheduled_by": "user"}, id="a person's next run"),
        pytest.param({"kind": "recall", "scheduled_by": "agent"}, id="an agent's recall"),
        pytest.param({"kind": "session", "scheduled_by": "agent"}, id="an agent's schedule"),
    ],
)
async def test_bounds_hold_only_an_agents_own_next_run(harness, request_):
    await set_bounds(harness, quiet_from=time(13), quiet_to=time(20), daily_cap=0)
    wake = await harness.book(at=NOON + HOUR, **request_)
    await harness.turn_at(NOON + HOUR)
    assert await told(harness, wake) == [("success", None, NOON + HOUR)]


# ── The daily cap ───────────────────────────────────────────────────────────────────────────────────────────────────


async def use_up(harness, times):
    for _ in range(times):
        await book_next_run(harness, harness.clock.now())
        await harness.turn()
        harness.clock.advance(MINUTE)


async def test_a_cap_reached_after_the_booking_holds_until_midnight_in_the_agents_zone(harness):
    await set_bounds(harness, daily_cap=2)
    await use_up(harness, 2)
    wake = await book_next_run(harness, NOON + HOUR)
    await harness.turn_at(NOON + HOUR)
    held = await harness.wake(wake)
    assert (held.status, held.held_by, held.attempt_at) == ("pending", "daily_cap", MIDNIGHT_IN_BERLIN)
    await harness.turn_at(MIDNIGHT_IN_BERLIN)
    assert await told(harness, wake) == [("success", None, MIDNIGHT_IN_BERLIN)]


async def test_a_capped_wake_is_not_looked_at_until_then(harness):
    await set_bounds(harness, daily_cap=1)
    await use_up(harness, 1)
    wake = await book_next_run(harness, NOON + HOUR)
    await harness.turn_at(NOON + HOUR)
    held = await harness.wake(wake)
    for hours in (2, 5, 9):
        assert await harness.turn_at(NOON + hours * HOUR) == harness.clock.now() + 30 * SECOND
    assert await harness.wake(wake) == held


async def test_only_the_agents_own_next_runs_use_up_its_cap(harness):
    await set_bounds(harness, daily_cap=1)
    for request in ({"kind": "next_run", "scheduled_by": "user"}, {"kind": "recall", "scheduled_by": "agent"}):
        await harness.book(at=harness.clock.now(), **request)
        await harness.turn()
    early = await book_next_run(harness, NOON + DAY)
    await harness.node.wakes.run_now(early.id, harness.user.id)
    await harness.turn()
    wake = await book_next_run(harness, NOON + HOUR)
    await harness.turn_at(NOON + HOUR)
    assert await told(harness, wake) == [("success", None, NOON + HOUR)]


async def test_a_capped_wake_that_meets_quiet_hours_at_midnight_waits_on_until_morning(harness):
    await set_bounds(harness, daily_cap=1, quiet_from=time(22), quiet_to=time(7))
    await use_up(harness, 1)
    wake = await book_next_run(harness, NOON + HOUR)
    morning = datetime(2026, 3, 3, 6, tzinfo=UTC)
    for at in (NOON + HOUR, MIDNIGHT_IN_BERLIN, morning):
        await harness.turn_at(at)
    assert await told(harness, wake) == [("success", None, morning)]
    assert [said.code for said in await harness.why(wake)][:3] == ["booked", "daily_cap", "quiet_hours"]


# ── The runaway brake ───────────────────────────────────────────────────────────────────────────────────────────────


async def book_many(harness, count, at, scheduled_by="agent", agent=None):
    return [await harness.book(kind="session", scheduled_by=scheduled_by, agent=agent, at=at) for _ in range(count)]


def ran(harness, wakes):
    booked = {wake.id for wake in wakes}
    return sum(each.run.wake_id in booked for each in harness.executor.ran)


async def test_an_agents_bookings_start_so_many_runs_an_hour_and_the_rest_wait(harness):
    wakes = await book_many(harness, BRAKE + 2, NOON)
    await harness.turn()
    assert ran(harness, wakes) == BRAKE
    await harness.turn_at(NOON + HOUR - SECOND)
    assert ran(harness, wakes) == BRAKE
    await harness.turn_at(NOON + HOUR)
    assert ran(harness, wakes) == BRAKE + 2


async def test_the_hour_rolls(harness):
    early = await book_many(harness, 1, NOON)
    late = await book_many(harness, BRAKE + 1, NOON + 50 * MINUTE)
    await harness.turn()
    await harness.turn_at(NOON + 50 * MINUTE)
    assert ran(harness, early + late) == BRAKE
    await harness.turn_at(NOON + HOUR)
    assert ran(harness, early + late) == BRAKE + 1
    await harness.turn_at(NOON + 110 * MINUTE)
    assert ran(harness, early + late) == BRAKE + 2


async def test_what_the_brake_held_is_not_missed(harness):
    await book_many(harness, BRAKE, NOON)
    wake = await book_next_run(harness, NOON + MINUTE)
    for at in (NOON, NOON + MINUTE, NOON + HOUR):
        await harness.turn_at(at)
    assert await told(harness, wake) == [("success", None, NOON + HOUR)]


async def test_the_person_is_told_once(harness):
    """Also when the clock strikes the hour between two of the wakes that wait."""
    start = NOON + 55 * MINUTE
    await book_many(harness, BRAKE + 2, start)
    await book_many(harness, 2, start + 10 * MINUTE)
    for minutes in (0, 1, 10, 20):
        await harness.turn_at(start + minutes * MINUTE)
    assert [notice.code for notice in await harness.notices()] == ["brake"]


async def test_a_person_and_another_agent_are_not_braked(harness):
    other = await harness.add_agent()
    await book_many(harness, BRAKE, NOON)
    persons = await book_many(harness, 3, NOON, scheduled_by="user")
    others = await book_many(harness, 3, NOON, agent=other)
    await harness.turn()
    assert ran(harness, persons + others) == 6


async def test_a_persons_runs_do_not_use_up_the_agents_hour(harness):
    await book_many(harness, BRAKE, NOON, scheduled_by="user")
    own = await book_many(harness, BRAKE, NOON)
    await harness.turn()
    assert ran(harness, own) == BRAKE


async def test_catching_up_after_a_sleep_is_braked_too(harness):
    wake = await harness.book(
        call_type="recurring", scheduled_by="agent", on_miss="run_catchup", every=HOUR, at=NOON + HOUR
    )
    await harness.turn_at(NOON + 9 * HOUR)
    assert [run.covers for run in await harness.runs_of(wake)] == [1, 1, 1, 1, 5]


async def test_a_chain_without_end_is_slowed_down_to_the_brake(harness):
    async def book_again(run):
        await harness.book(kind="next_run", scheduled_by="agent", booked_by_run=run.id, at=harness.clock.now() + SECOND)

    harness.executor.default = doing(book_again)
    await book_next_run(harness, NOON)
    await set_bounds(harness, daily_cap=1000)
    await harness.live_until(NOON + HOUR - SECOND)
    assert len(harness.executor.ran) == BRAKE
