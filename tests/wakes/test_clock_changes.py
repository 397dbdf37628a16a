"""Wall-clock times across daylight saving time changes, fired by the engine."""

from collections import defaultdict
from datetime import datetime, timedelta

import pytest

from harness import DAY, HOUR, MINUTE
from wakeful.core.zones import load_zone, resolve_wall_clock
from wakeful.timing.when import parse_when

pytestmark = pytest.mark.both_stores

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


async def live_by_the_instants(harness, wake, end):
    """Jump from planned instant to planned instant; the half-minute looks in between change nothing."""
    while wake.is_live and wake.attempt_at <= end:
        await harness.turn_at(wake.attempt_at - timedelta(microseconds=1))
        await harness.turn_at(wake.attempt_at)
        wake = await harness.wake(wake)


async def live_around(harness, day, zone, **request):
    """Live from two noons before a day until two after it, and return by date at what local times a wake was run."""
    noon = start_of(day, zone) + 12 * HOUR
    harness.clock.set(noon - 2 * DAY)
    wake = await harness.book(timezone=zone, **request)
    await live_by_the_instants(harness, wake, noon + 2 * DAY)
    starts = defaultdict(list)
    for run in await harness.runs_of(wake):
        assert (run.covers, run.started_at) == (1, run.nominal_at)
        date, _, time = f"{run.started_at.astimezone(load_zone(zone)):%Y-%m-%d %H:%M%z}".partition(" ")
        starts[date].append(time)
    return starts


@pytest.mark.parametrize("zone", SPRING)
async def test_a_daily_time_in_the_spring_gap_fires_right_after_it_and_then_as_always(harness, zone):
    day, time, shown = SPRING[zone]
    starts = await live_around(harness, day, zone, call_type="recurring", cron=daily(time))
    assert starts.pop(day) == [shown]
    assert [[start[:5] for start in times] for times in starts.values()] == [[time]] * 3


@pytest.mark.parametrize("zone", AUTUMN)
async def test_a_daily_time_that_comes_twice_in_autumn_fires_the_first_time_only(harness, zone):
    day, time, offset = AUTUMN[zone]
    starts = await live_around(harness, day, zone, call_type="recurring", cron=daily(time))
    assert starts.pop(day) == [time + offset]
    assert [[start[:5] for start in times] for times in starts.values()] == [[time]] * 3


@pytest.mark.parametrize("zone", SPRING)
async def test_a_wall_clock_time_in_the_spring_gap_fires_right_after_it(harness, zone):
    day, time, shown = SPRING[zone]
    before = start_of(day, zone) - 3 * HOUR
    starts = await live_around(harness, day, zone, at=parse_when(f"tomorrow at {time}", before, zone).at)
    assert starts == {day: [shown]}


@pytest.mark.parametrize("zone", AUTUMN)
async def test_a_wall_clock_time_that_comes_twice_in_autumn_fires_once_the_first_time(harness, zone):
    day, time, offset = AUTUMN[zone]
    before = start_of(day, zone) - 3 * HOUR
    starts = await live_around(harness, day, zone, at=parse_when(f"tomorrow at {time}", before, zone).at)
    assert starts == {day: [time + offset]}


@pytest.mark.parametrize(
    ("day", "hours"), [pytest.param("2026-03-29", 23, id="spring"), pytest.param("2026-10-25", 25, id="autumn")]
)
async def test_an_hourly_rule_follows_real_hours_through_the_change(harness, day, hours):
    midnight = start_of(day, "Europe/Berlin")
    harness.clock.set(midnight - MINUTE)
    wake = await harness.book(call_type="recurring", cron="0 * * * *", timezone="Europe/Berlin")
    await live_by_the_instants(harness, wake, midnight + hours * HOUR - MINUTE)
    assert [run.started_at for run in await harness.runs_of(wake)] == [
        midnight + number * HOUR for number in range(hours)
    ]


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
async def test_an_interval_does_not_notice_the_change(harness, day):
    midnight = start_of(day, "Europe/Berlin")
    harness.clock.set(midnight)
    wake = await harness.book(call_type="recurring", every=5 * HOUR, at=midnight, timezone="Europe/Berlin")
    await live_by_the_instants(harness, wake, midnight + DAY)
    assert [run.started_at for run in await harness.runs_of(wake)] == [
        midnight + number * 5 * HOUR for number in range(5)
    ]


async def test_a_machine_asleep_through_the_autumn_night_counts_the_repeated_time_once(harness):
    midnight = start_of("2026-10-25", "Europe/Berlin")
    harness.clock.set(midnight)
    wake = await harness.book(call_type="recurring", cron="30 2 * * *", timezone="Europe/Berlin", on_miss="run_catchup")
    await harness.turn_at(midnight + 12 * HOUR)
    assert [(run.nominal_at, run.covers) for run in await harness.runs_of(wake)] == [(midnight + 2.5 * HOUR, 1)]
