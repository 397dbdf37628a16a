"""Wall-clock times through the changes of the clocks, fired by the engine."""

from datetime import datetime, timedelta

import pytest
from world import DAY, HOUR, MINUTE

from wakeful.domain.when import parse_when
from wakeful.domain.zones import load_zone, resolve_wall_clock

SPRING = {  # zone: the day on which an hour or so is missing, a time in the gap, and what clocks show right after it
    "Europe/Berlin": ("2026-03-29", "02:30", "03:00+0200"),
    "America/New_York": ("2026-03-08", "02:30", "03:00-0400"),
    "Australia/Lord_Howe": ("2026-10-04", "02:15", "02:30+1100"),  # half an hour
    "America/Santiago": ("2026-09-06", "00:30", "01:00-0300"),  # there is no midnight
}
AUTUMN = {  # zone: the day on which an hour or so comes twice, a time that does, and the first pass's offset
    "Europe/Berlin": ("2026-10-25", "02:30", "+0200"),
    "America/New_York": ("2026-11-01", "01:30", "-0400"),
    "Australia/Lord_Howe": ("2026-04-05", "01:45", "+1100"),
    "America/Santiago": ("2026-04-04", "23:30", "-0300"),
}


def start_of(day, zone):
    return resolve_wall_clock(datetime.fromisoformat(day), load_zone(zone))


def daily(time):
    hour, minute = time.split(":")
    return f"{int(minute)} {int(hour)} * * *"


async def local_starts(world, wake, form):
    zone = load_zone(wake.timezone)
    runs = await world.runs_of(wake)
    assert all(run.covers == 1 and run.started_at == run.nominal_at for run in runs)
    return [run.started_at.astimezone(zone).strftime(form) for run in runs]


async def live_by_the_instants(world, wake, end):
    """Jump from planned instant to planned instant; the half-minute looks in between change nothing."""
    while (at := (await world.wake(wake)).attempt_at) <= end:
        await world.turn_at(at - timedelta(microseconds=1))
        await world.turn_at(at)


@pytest.mark.parametrize("zone", SPRING)
async def test_a_daily_time_in_the_spring_gap_fires_right_after_it_and_then_as_always(world, zone):
    day, time, shown = SPRING[zone]
    world.clock.set(start_of(day, zone) - DAY)
    wake = await world.book(call_type="recurring", cron=daily(time), timezone=zone)
    await live_by_the_instants(world, wake, start_of(day, zone) + 2 * DAY)
    starts = await local_starts(world, wake, "%H:%M%z")
    assert [start[:5] for start in starts] == [time, shown[:5], time]
    assert starts[1] == shown


@pytest.mark.parametrize("zone", AUTUMN)
async def test_a_daily_time_that_comes_twice_in_autumn_fires_the_first_time_only(world, zone):
    day, time, offset = AUTUMN[zone]
    world.clock.set(start_of(day, zone) - DAY)
    wake = await world.book(call_type="recurring", cron=daily(time), timezone=zone)
    await live_by_the_instants(world, wake, start_of(day, zone) + 2 * DAY)
    starts = await local_starts(world, wake, "%H:%M%z")
    assert [start[:5] for start in starts] == [time] * 3
    assert starts[1] == time + offset


@pytest.mark.parametrize("zone", SPRING)
async def test_a_wall_clock_time_in_the_spring_gap_fires_right_after_it(world, zone):
    day, time, shown = SPRING[zone]
    world.clock.set(start_of(day, zone) - 3 * HOUR)
    at = parse_when(f"tomorrow at {time}", world.clock.now(), zone)
    wake = await world.book(at=at, timezone=zone)
    await live_by_the_instants(world, wake, start_of(day, zone) + DAY)
    assert await local_starts(world, wake, "%Y-%m-%d %H:%M%z") == [f"{day} {shown}"]


@pytest.mark.parametrize("zone", AUTUMN)
async def test_a_wall_clock_time_that_comes_twice_in_autumn_fires_once_the_first_time(world, zone):
    day, time, offset = AUTUMN[zone]
    world.clock.set(start_of(day, zone) - 3 * HOUR)
    at = parse_when(f"tomorrow at {time}", world.clock.now(), zone)
    wake = await world.book(at=at, timezone=zone)
    await live_by_the_instants(world, wake, start_of(day, zone) + DAY)
    assert await local_starts(world, wake, "%Y-%m-%d %H:%M%z") == [f"{day} {time}{offset}"]


@pytest.mark.parametrize(
    ("day", "hours"), [pytest.param("2026-03-29", 23, id="spring"), pytest.param("2026-10-25", 25, id="autumn")]
)
async def test_an_hourly_rule_follows_real_hours_through_the_change(world, day, hours):
    midnight = start_of(day, "Europe/Berlin")
    world.clock.set(midnight - MINUTE)
    wake = await world.book(call_type="recurring", cron="0 * * * *", timezone="Europe/Berlin")
    await live_by_the_instants(world, wake, midnight + hours * HOUR - MINUTE)
    assert [run.started_at for run in await world.runs_of(wake)] == [midnight + number * HOUR for number in range(hours)]


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
async def test_an_interval_does_not_notice_the_change(world, day):
    midnight = start_of(day, "Europe/Berlin")
    world.clock.set(midnight)
    wake = await world.book(call_type="recurring", every=5 * HOUR, at=midnight, timezone="Europe/Berlin")
    await live_by_the_instants(world, wake, midnight + DAY)
    assert [run.started_at for run in await world.runs_of(wake)] == [midnight + number * 5 * HOUR for number in range(5)]


async def test_a_machine_asleep_through_the_autumn_night_counts_the_repeated_time_once(world):
    midnight = start_of("2026-10-25", "Europe/Berlin")
    world.clock.set(midnight)
    wake = await world.book(call_type="recurring", cron="30 2 * * *", timezone="Europe/Berlin", on_miss="run_catchup")
    await world.turn_at(midnight + 12 * HOUR)
    assert [(run.nominal_at, run.covers) for run in await world.runs_of(wake)] == [(midnight + 2.5 * HOUR, 1)]
