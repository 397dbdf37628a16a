"""What an agent's bounds and the runaway brake hold when a wake comes due: it waits for the first allowed instant."""

from dataclasses import replace
from datetime import UTC, datetime, time

import pytest

from wakeful.domain.bounds.bounds import PRESETS
from world import DAY, HOUR, MINUTE, NOON, SECOND, doing

BRAKE = 5  # runs an hour, instead of sixty
MIDNIGHT_IN_BERLIN = datetime(2026, 3, 2, 23, tzinfo=UTC)


@pytest.fixture
def backend_settings(backend_settings):
    return backend_settings | {"runs_per_hour": BRAKE}


async def set_bounds(world, **changes):
    await world.node.agents.save(replace(world.agent, bounds=replace(PRESETS["reactive"], **changes)))


async def book_next_run(world, at, **request):
    return await world.book(kind="next_run", at=at, **({"scheduled_by": "agent"} | request))


async def told(world, wake):
    return [(run.status, run.reason, run.started_at) for run in await world.runs_of(wake)]


# ── Quiet hours and days ────────────────────────────────────────────────────────────────────────────────────────────


async def test_quiet_hours_set_after_the_booking_hold_it(world):
    """Two in the afternoon in Berlin is 13:00 UTC; quiet until half past three there."""
    wake = await book_next_run(world, NOON + HOUR)
    await set_bounds(world, quiet_from=time(13, 30), quiet_to=time(15, 30))
    await world.turn_at(NOON + HOUR)
    held = await world.wake(wake)
    assert (held.status, held.held_by, held.attempt_at) == ("pending", "quiet_hours", NOON + 2.5 * HOUR)
    await world.turn_at(NOON + 2.5 * HOUR)
    assert await told(world, wake) == [("success", None, NOON + 2.5 * HOUR)]


async def test_a_wake_found_late_in_quiet_hours_waits_for_the_morning_and_is_not_missed(world):
    """Planned for a minute before ten in the evening; the machine woke a minute after."""
    await set_bounds(world, quiet_from=time(22), quiet_to=time(7))
    wake = await book_next_run(world, datetime(2026, 3, 2, 20, 59, tzinfo=UTC))
    await world.turn_at(datetime(2026, 3, 2, 21, 1, tzinfo=UTC))
    morning = datetime(2026, 3, 3, 6, tzinfo=UTC)
    await world.turn_at(morning)
    assert await told(world, wake) == [("success", None, morning)]


async def test_a_day_that_is_not_allowed_holds_until_midnight_in_the_agents_zone(world):
    wake = await book_next_run(world, NOON + HOUR)
    await set_bounds(world, days=frozenset({1, 2}))
    await world.turn_at(NOON + HOUR)
    assert (await world.wake(wake)).held_by == "day_not_allowed"
    await world.turn_at(MIDNIGHT_IN_BERLIN)
    assert await told(world, wake) == [("success", None, MIDNIGHT_IN_BERLIN)]


async def test_bounds_that_are_widened_let_go_at_once(world):
    await set_bounds(world, quiet_from=time(13), quiet_to=time(20))
    wake = await book_next_run(world, NOON + HOUR)
    await world.turn_at(NOON + HOUR)
    world.clock.advance(MINUTE)
    await set_bounds(world)
    await world.turn()
    assert await told(world, wake) == [("success", None, NOON + 61 * MINUTE)]


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param({"kind": "next_run", "scheduled_by": "user"}, id="a person's next run"),
        pytest.param({"kind": "recall", "scheduled_by": "agent"}, id="an agent's recall"),
        pytest.param({"kind": "session", "scheduled_by": "agent"}, id="an agent's schedule"),
    ],
)
async def test_bounds_hold_only_an_agents_own_next_run(world, request_):
    await set_bounds(world, quiet_from=time(13), quiet_to=time(20), daily_cap=0)
    wake = await world.book(at=NOON + HOUR, **request_)
    await world.turn_at(NOON + HOUR)
    assert await told(world, wake) == [("success", None, NOON + HOUR)]


# ── The daily cap ───────────────────────────────────────────────────────────────────────────────────────────────────


async def use_up(world, times):
    for _ in range(times):
        await book_next_run(world, world.clock.now())
        await world.turn()
        world.clock.advance(MINUTE)


async def test_a_cap_reached_after_the_booking_holds_until_midnight_in_the_agents_zone(world):
    await set_bounds(world, daily_cap=2)
    await use_up(world, 2)
    wake = await book_next_run(world, NOON + HOUR)
    await world.turn_at(NOON + HOUR)
    held = await world.wake(wake)
    assert (held.status, held.held_by, held.attempt_at) == ("pending", "daily_cap", MIDNIGHT_IN_BERLIN)
    await world.turn_at(MIDNIGHT_IN_BERLIN)
    assert await told(world, wake) == [("success", None, MIDNIGHT_IN_BERLIN)]


async def test_a_capped_wake_is_not_looked_at_until_then(world):
    await set_bounds(world, daily_cap=1)
    await use_up(world, 1)
    wake = await book_next_run(world, NOON + HOUR)
    await world.turn_at(NOON + HOUR)
    held = await world.wake(wake)
    for hours in (2, 5, 9):
        assert await world.turn_at(NOON + hours * HOUR) == world.clock.now() + 30 * SECOND
    assert await world.wake(wake) == held


async def test_only_the_agents_own_next_runs_use_up_its_cap(world):
    await set_bounds(world, daily_cap=1)
    for request in ({"kind": "next_run", "scheduled_by": "user"}, {"kind": "recall", "scheduled_by": "agent"}):
        await world.book(at=world.clock.now(), **request)
        await world.turn()
    early = await book_next_run(world, NOON + DAY)
    await world.node.wakes.run_now(early.id, world.user.id)
    await world.turn()
    wake = await book_next_run(world, NOON + HOUR)
    await world.turn_at(NOON + HOUR)
    assert await told(world, wake) == [("success", None, NOON + HOUR)]


async def test_a_capped_wake_that_meets_quiet_hours_at_midnight_waits_on_until_morning(world):
    await set_bounds(world, daily_cap=1, quiet_from=time(22), quiet_to=time(7))
    await use_up(world, 1)
    wake = await book_next_run(world, NOON + HOUR)
    morning = datetime(2026, 3, 3, 6, tzinfo=UTC)
    for at in (NOON + HOUR, MIDNIGHT_IN_BERLIN, morning):
        await world.turn_at(at)
    assert await told(world, wake) == [("success", None, morning)]
    assert [said.code for said in await world.why(wake)][:3] == ["booked", "daily_cap", "quiet_hours"]


# ── The runaway brake ───────────────────────────────────────────────────────────────────────────────────────────────


async def book_many(world, count, at, scheduled_by="agent", agent=None):
    return [await world.book(kind="session", scheduled_by=scheduled_by, agent=agent, at=at) for _ in range(count)]


def ran(world, wakes):
    booked = {wake.id for wake in wakes}
    return sum(each.run.wake_id in booked for each in world.executor.ran)


async def test_an_agents_bookings_start_so_many_runs_an_hour_and_the_rest_wait(world):
    wakes = await book_many(world, BRAKE + 2, NOON)
    await world.turn()
    assert ran(world, wakes) == BRAKE
    await world.turn_at(NOON + HOUR - SECOND)
    assert ran(world, wakes) == BRAKE
    await world.turn_at(NOON + HOUR)
    assert ran(world, wakes) == BRAKE + 2


async def test_the_hour_rolls(world):
    early = await book_many(world, 1, NOON)
    late = await book_many(world, BRAKE + 1, NOON + 50 * MINUTE)
    await world.turn()
    await world.turn_at(NOON + 50 * MINUTE)
    assert ran(world, early + late) == BRAKE
    await world.turn_at(NOON + HOUR)
    assert ran(world, early + late) == BRAKE + 1
    await world.turn_at(NOON + 110 * MINUTE)
    assert ran(world, early + late) == BRAKE + 2


async def test_what_the_brake_held_is_not_missed(world):
    await book_many(world, BRAKE, NOON)
    wake = await book_next_run(world, NOON + MINUTE)
    for at in (NOON, NOON + MINUTE, NOON + HOUR):
        await world.turn_at(at)
    assert await told(world, wake) == [("success", None, NOON + HOUR)]


async def test_the_person_is_told_once(world):
    """Also when the clock strikes the hour between two of the wakes that wait."""
    start = NOON + 55 * MINUTE
    await book_many(world, BRAKE + 2, start)
    await book_many(world, 2, start + 10 * MINUTE)
    for minutes in (0, 1, 10, 20):
        await world.turn_at(start + minutes * MINUTE)
    assert [notice.code for notice in await world.notices()] == ["brake"]


async def test_a_person_and_another_agent_are_not_braked(world):
    other = await world.add_agent()
    await book_many(world, BRAKE, NOON)
    persons = await book_many(world, 3, NOON, scheduled_by="user")
    others = await book_many(world, 3, NOON, agent=other)
    await world.turn()
    assert ran(world, persons + others) == 6


async def test_a_persons_runs_do_not_use_up_the_agents_hour(world):
    await book_many(world, BRAKE, NOON, scheduled_by="user")
    own = await book_many(world, BRAKE, NOON)
    await world.turn()
    assert ran(world, own) == BRAKE


async def test_catching_up_after_a_sleep_is_braked_too(world):
    wake = await world.book(
        call_type="recurring", scheduled_by="agent", on_miss="run_catchup", every=HOUR, at=NOON + HOUR
    )
    await world.turn_at(NOON + 9 * HOUR)
    assert [run.covers for run in await world.runs_of(wake)] == [1, 1, 1, 1, 5]


async def test_a_chain_without_end_is_slowed_down_to_the_brake(world):
    async def book_again(run):
        await world.book(kind="next_run", scheduled_by="agent", booked_by_run=run.id, at=world.clock.now() + SECOND)

    world.executor.default = doing(book_again)
    await book_next_run(world, NOON)
    await set_bounds(world, daily_cap=1000)
    await world.live_until(NOON + HOUR - SECOND)
    assert len(world.executor.ran) == BRAKE
