import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile
from types import FrameType
from typing import Any

import pytest
from cronsim import CronSim
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fixtures.stores import IS_LONG
from wakeful.core.errors import Invalid
from wakeful.core.types import FOREVER, Wake
from wakeful.core.zones import load_zone, resolve_wall_clock
from wakeful.timing.recurrence import BadCron, Grid, RecurrenceUnclear, Span, check_cron

NOW = datetime(2026, 7, 1, 8, 0, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
ZONES = [
    *("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Santiago"),
    *("America/Sao_Paulo", "Africa/Casablanca", "Pacific/Apia", "America/Havana", "Antarctica/Troll"),
]
CRONS = [
    *("0 9 * * *", "30 2 * * *", "0 */2 * * *", "*/15 2 * * *", "0 0 * * *", "59 23 * * *", "15,45 0-3 * * 0,6"),
    *(
        "* * * * *",
        "*/15 * * * *",
        "7 * * * *",
        "0 * * * 1-5",
        "30 0-23 1 * *",
        "0 12 29 2 *",
        "0 * L * *",
        "0 1 * * SUN#1",
    ),
]


def every(length):
    return Grid(every=length, cron=None, timezone="UTC")


def cron(text, zone="UTC"):
    return Grid(every=None, cron=text, timezone=zone)


def shown(grid, after, count):
    """Return the next instants as the zone's clocks show them."""
    first = grid.next_after(after, after=after)
    return [at.astimezone(load_zone(grid.timezone)).strftime("%d %H:%M%z") for at in grid.times_from(first, count)]


def local_midnight(zone, year, month, day):
    return resolve_wall_clock(datetime(year, month, day), load_zone(zone)) - SECOND


# ── Intervals ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("after", "due"),
    [
        pytest.param(NOW - DAY, NOW, id="before the anchor"),
        pytest.param(NOW - MINUTE / 60_000_000, NOW, id="a microsecond before the anchor"),
        pytest.param(NOW, NOW + 5 * MINUTE, id="on the anchor"),
        pytest.param(NOW + 5 * MINUTE - SECOND, NOW + 5 * MINUTE, id="just before one"),
        pytest.param(NOW + 5 * MINUTE, NOW + 10 * MINUTE, id="on one"),
        pytest.param(NOW + 365 * DAY + SECOND, NOW + 365 * DAY + 5 * MINUTE, id="after a long sleep"),
    ],
)
def test_an_interval_stays_on_the_grid_of_its_anchor(after, due):
    assert every(5 * MINUTE).next_after(NOW, after=after) == due


def test_an_interval_of_a_day_keeps_real_time_over_a_clock_change():
    before = datetime(2026, 3, 28, 11, 0, tzinfo=UTC)
    assert Grid(every=DAY, cron=None, timezone="Europe/Berlin").next_after(before, after=before) == before + DAY


def test_an_interval_beyond_the_calendar_is_never():
    assert every(timedelta(days=4_000_000)).next_after(NOW, after=NOW) == FOREVER
    assert every(timedelta(days=4_000_000)).times_from(NOW, 3) == [NOW]


@pytest.mark.parametrize("until", [NOW, NOW + 5 * MINUTE, NOW + 12 * MINUTE])
def test_a_span_counts_both_ends(until):
    last = NOW + (until - NOW) // (5 * MINUTE) * 5 * MINUTE
    count = (last - NOW) // (5 * MINUTE) + 1
    assert every(5 * MINUTE).span(NOW, until) == Span(count=count, next=last + 5 * MINUTE)


@pytest.mark.parametrize("grid", [every(5 * MINUTE), cron("0 8 * * *")])
def test_a_span_that_ends_before_it_begins_counts_nothing(grid):
    assert grid.span(NOW, NOW - SECOND) == Span(count=0, next=NOW)


@pytest.mark.parametrize(
    ("length", "text"), [(None, None), (MINUTE, "0 9 * * *"), (timedelta(0), None), (-MINUTE, None)]
)
def test_a_grid_needs_a_positive_interval_or_a_cron_expression(length, text):
    with pytest.raises(RecurrenceUnclear):
        Grid(every=length, cron=text, timezone="UTC")


def test_the_grid_of_a_wake_is_its_rule_in_its_zone():
    wake = Wake(
        id="w",
        kind="recall",
        agent_id="a",
        user_id="u",
        session_id="s",
        slot=None,
        call_type="recurring",
        cron="0 9 * * *",
        timezone="Asia/Kathmandu",
        nominal_at=NOW,
        attempt_at=NOW,
        instructions="check",
        scheduled_by="agent",
        created_at=NOW,
        updated_at=NOW,
    )
    assert Grid.of(wake).next_after(NOW, after=NOW) == datetime(2026, 7, 2, 3, 15, tzinfo=UTC)


def test_take_returns_the_first_instants_from_a_planned_one():
    assert every(HOUR).times_from(NOW, 3) == [NOW, NOW + HOUR, NOW + 2 * HOUR]
    assert cron("0 8 * * *").times_from(NOW, 2) == [NOW, NOW + DAY]
    assert every(HOUR).times_from(NOW, 0) == []


# ── Cron and the clocks ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "zone", "day", "times"),
    [
        pytest.param("30 2 * * *", "Europe/Berlin", (2026, 3, 29), ["29 03:00+0200", "30 02:30+0200"], id="Berlin"),
        pytest.param("30 2 * * *", "America/New_York", (2026, 3, 8), ["08 03:00-0400", "09 02:30-0400"], id="New York"),
        pytest.param(
            "5 2 * * *", "Australia/Lord_Howe", (2026, 10, 4), ["04 02:30+1100", "05 02:05+1100"], id="half an hour"
        ),
        pytest.param(
            "0 0 * * *", "America/Sao_Paulo", (2017, 10, 15), ["15 01:00-0200", "16 00:00-0200"], id="no midnight"
        ),
        pytest.param(
            "30 2 * * *", "Africa/Casablanca", (2026, 3, 22), ["22 03:00+0100", "23 02:30+0100"], id="after Ramadan"
        ),
        pytest.param("0 9 * * *", "Pacific/Apia", (2011, 12, 30), ["31 00:00+1400", "31 09:00+1400"], id="a lost day"),
        pytest.param("0,30 2 * * *", "Europe/Berlin", (2026, 3, 29), ["29 03:00+0200", "30 02:00+0200"], id="two meet"),
        pytest.param(
            "0 2,3 * * *", "Europe/Berlin", (2026, 3, 29), ["29 03:00+0200", "30 02:00+0200"], id="one is there"
        ),
        pytest.param(
            "*/15 2 * * *", "Europe/Berlin", (2026, 3, 29), ["29 03:00+0200", "30 02:00+0200"], id="four meet"
        ),
        pytest.param(
            "0 */2 * * *",
            "Europe/Berlin",
            (2026, 3, 29),
            ["29 00:00+0100", "29 03:00+0200", "29 04:00+0200"],
            id="evens",
        ),
    ],
)
def test_a_cron_time_in_a_gap_fires_once_after_it(text, zone, day, times):
    assert shown(cron(text, zone), local_midnight(zone, *day), len(times)) == times


@pytest.mark.parametrize(
    ("text", "zone", "day", "times"),
    [
        pytest.param("30 2 * * *", "Europe/Berlin", (2026, 10, 25), ["25 02:30+0200", "26 02:30+0100"], id="Berlin"),
        pytest.param(
            "30 1 * * *", "America/New_York", (2026, 11, 1), ["01 01:30-0400", "02 01:30-0500"], id="New York"
        ),
        pytest.param(
            "45 1 * * *", "Australia/Lord_Howe", (2026, 4, 5), ["05 01:45+1100", "06 01:45+1030"], id="half an hour"
        ),
        pytest.param(
            "30 23 * * *", "America/Sao_Paulo", (2018, 2, 17), ["17 23:30-0200", "18 23:30-0300"], id="at midnight"
        ),
        pytest.param(
            "30 2 * * *", "Africa/Casablanca", (2026, 2, 15), ["15 02:30+0100", "16 02:30+0000"], id="Ramadan"
        ),
        pytest.param(
            "0 */2 * * *",
            "Europe/Berlin",
            (2026, 10, 25),
            ["25 00:00+0200", "25 02:00+0200", "25 04:00+0100"],
            id="evens",
        ),
    ],
)
def test_a_cron_time_that_comes_twice_fires_the_first_time(text, zone, day, times):
    assert shown(cron(text, zone), local_midnight(zone, *day), len(times)) == times


def test_no_cron_time_is_planned_in_the_past_of_a_second_pass():
    second_pass = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)  # 02:10 in Berlin, again
    assert shown(cron("30 2 * * *", "Europe/Berlin"), second_pass, 1) == ["26 02:30+0100"]


@pytest.mark.parametrize(
    ("text", "zone", "after", "times"),
    [
        pytest.param(
            "7 * * * *",
            "Europe/Berlin",
            "2026-03-29T00:00Z",
            ["29 01:07+0100", "29 03:07+0200", "29 04:07+0200"],
            id="gap",
        ),
        pytest.param(
            "7 * * * *",
            "Europe/Berlin",
            "2026-10-24T23:30Z",
            ["25 02:07+0200", "25 02:07+0100", "25 03:07+0100"],
            id="fold",
        ),
        pytest.param(
            "*/30 * * * *",
            "Australia/Lord_Howe",
            "2026-04-04T14:10Z",
            ["05 01:30+1100", "05 01:30+1030", "05 02:00+1030"],
            id="half an hour back",
        ),
        pytest.param(
            "*/20 * * * *",
            "Australia/Lord_Howe",
            "2026-10-03T15:10Z",
            ["04 02:40+1100", "04 03:00+1100"],
            id="half an hour on",
        ),
        pytest.param(
            "30 * 4 4 *",
            "America/Santiago",
            "2026-04-05T02:45Z",
            ["04 23:30-0400", "04 00:30-0400"],
            id="the last hour of a day, repeated",
        ),
    ],
)
def test_a_cron_of_every_hour_follows_the_clock_through_a_change(text, zone, after, times):
    assert shown(cron(text, zone), datetime.fromisoformat(after), len(times)) == times


@pytest.mark.parametrize("day", [(2026, 3, 29), (2026, 10, 25), (2026, 7, 1)])
def test_an_hourly_cron_never_leaves_a_real_hour_out(day):
    grid = cron("0 * * * *", "Europe/Berlin")
    midnight = local_midnight("Europe/Berlin", *day)
    assert {later - at for at, later in pairwise(grid.times_from(grid.next_after(midnight, after=midnight), 30))} == {
        HOUR
    }


def test_a_leap_day_comes_every_four_years():
    assert [at.year for at in cron("0 0 29 2 *").times_from(datetime(2028, 2, 29, tzinfo=UTC), 3)] == [2028, 2032, 2036]


def test_a_far_cron_of_every_hour_uses_the_offset_of_its_own_season():
    assert shown(cron("0 * 29 2 *", "Europe/Berlin"), NOW, 2) == ["29 00:00+0100", "29 01:00+0100"]


def test_a_leap_day_is_eight_years_away_around_2100():
    assert cron("0 0 29 2 *").next_after(NOW, after=datetime(2096, 3, 1, tzinfo=UTC)) == datetime(
        2104, 2, 29, tzinfo=UTC
    )


def test_a_yearly_time_keeps_its_wall_clock():
    assert shown(cron("0 9 1 1 *", "Asia/Kathmandu"), NOW, 2) == ["01 09:00+0545", "01 09:00+0545"]


def test_a_day_and_a_weekday_together_mean_either():
    assert shown(cron("0 9 13 * FRI"), NOW, 3) == ["03 09:00+0000", "10 09:00+0000", "13 09:00+0000"]


def test_a_cron_at_the_end_of_the_calendar_is_never():
    assert cron("0 0 * * *").next_after(NOW, after=datetime(9999, 12, 31, 12, tzinfo=UTC)) == FOREVER


# ── What is refused ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text", ["0 9 * * 1-5", "*/15 * * * *", "0 0 29 2 *", "0 9 L * *", "0 9 * * mon#1", "  0 9 * * 7 "]
)
def test_a_good_cron_expression_passes(text):
    check_cron(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "0 9 * *", "0 0 9 * * *", "@daily", "60 * * * *", "0 24 * * *", "0 0 0 * *", "0 0 * 13 *", "* * * * 8"),
        *("0 0 30 2 *", "0 0 31 4,6 *", "0 0 * 2 MON#6", "*/0 * * * *", "5-1 * * * *", "a b c d e", "0 9 * * fri-mon"),
        *("9" * 5000 + " * * * *", "٣ * * * *"),
    ],
)
def test_a_cron_expression_that_cannot_be_read_or_never_fires_is_refused(text):
    with pytest.raises(BadCron) as refused:
        check_cron(text)
    assert repr(text[:80]) in refused.value.message
    assert refused.value.field == "cron"


@given(
    st.text(max_size=250)
    | st.lists(st.text("0123456789*/,-#LWMONFRI", max_size=5), min_size=5, max_size=5).map(" ".join)
)
def test_garbage_raises_only_the_domain_error(text):
    try:
        check_cron(text)
    except Invalid:
        return
    assert cron(text, "Europe/Berlin").next_after(NOW, after=NOW) > NOW


# ── Against brute force ─────────────────────────────────────────────────────────────────────────────────────────────

GRIDS = st.builds(
    lambda length, text, zone: Grid(every=length, cron=None if length else text, timezone=zone),
    st.none() | st.timedeltas(SECOND, 3 * DAY),
    st.sampled_from(CRONS),
    st.sampled_from(ZONES),
)
INSTANTS = st.datetimes(datetime(2009, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))
SWITCHES = [  # an hour or a day before a clock change
    *(datetime(2026, 3, 28, 12), datetime(2026, 10, 24, 12), datetime(2026, 10, 25, 0, 59), datetime(2026, 4, 4, 3)),
    *(datetime(2026, 10, 3, 3), datetime(2011, 12, 29, 12), datetime(2017, 10, 14, 12), datetime(2018, 2, 17, 12)),
    *(datetime(2026, 4, 4, 15), datetime(2026, 3, 7, 15), datetime(2026, 11, 1, 2), datetime(2026, 2, 14, 15)),
]
AFTERS = INSTANTS | st.builds(
    lambda switch, shift: switch.replace(tzinfo=UTC) + shift,
    st.sampled_from(SWITCHES),
    st.timedeltas(timedelta(0), DAY),
)


def all_planned(grid, after, until):
    """Return every planned instant in (after, until] by looking at each minute, or at each local time."""
    zone, rule = load_zone(grid.timezone), CronSim(grid.cron, datetime(2000, 1, 1))

    def matches(local):
        return (
            local.minute in rule.minutes
            and local.hour in rule.hours
            and rule.match_day(local)
            and local.month in rule.months
        )

    first = after.replace(second=0, microsecond=0)
    minutes = [first + n * MINUTE for n in range(-2880, int((until - first) / MINUTE) + 2880)]
    if len(rule.hours) == 24:
        planned = {at for at in minutes if matches(at.astimezone(zone))}
    else:
        planned = {resolve_wall_clock(at.replace(tzinfo=None), zone) for at in minutes if matches(at)}
    return sorted(at for at in planned if after < at <= until)


@settings(max_examples=150 if IS_LONG else 50, deadline=None)
@given(st.sampled_from(CRONS), st.sampled_from(ZONES), AFTERS)
def test_cron_instants_are_those_found_minute_by_minute(text, zone, after):
    grid = cron(text, zone)
    planned = all_planned(grid, after, after + 2 * DAY)
    following = grid.times_from(grid.next_after(after, after=after), len(planned) + 1)
    assert following[:-1] == planned
    assert following[-1] > after + 2 * DAY


@settings(deadline=None)
@given(GRIDS, AFTERS)
def test_planned_instants_strictly_increase_and_each_follows_the_one_before(grid, after):
    instants = grid.times_from(grid.next_after(after, after=after), 20)
    assert all(at < later for at, later in pairwise(instants))
    assert all(grid.next_after(at, after=at) == later for at, later in pairwise(instants))
    assert all(grid.next_after(at, after=later - SECOND / 1000) == later for at, later in pairwise(instants))


@given(st.timedeltas(SECOND, 3 * DAY), INSTANTS, st.timedeltas(timedelta(0), 2000 * DAY))
def test_an_interval_instant_is_on_the_grid_and_at_most_one_step_away(length, anchor, later):
    due = every(length).next_after(anchor, after=anchor + later)
    assert (due - anchor) % length == timedelta(0)
    assert timedelta(0) < due - (anchor + later) <= length


@settings(deadline=None)
@given(GRIDS, AFTERS, st.timedeltas(timedelta(0), 5 * DAY))
@example(cron("*/15 * * * *", "Europe/Berlin"), datetime(2026, 10, 24, 22, tzinfo=UTC), 3 * HOUR)
def test_a_span_equals_counting_one_by_one(grid, after, length):
    first = grid.next_after(after, after=after)
    until = first + min(length, 300 * grid.every) if grid.every else first + min(length, DAY)
    count, following = 1, grid.next_after(first, after=first)
    while following <= until:
        count, following = count + 1, grid.next_after(first, after=following)
    assert grid.span(first, until) == Span(count=count, next=following)


MANY_A_DAY = [*CRONS, "*/7 1-3 * * *", "0,30 0,2,23 * * *", "5 0-22 * * *", "*/20 * 28-31 * *", "0 2 * 3,10 7"]


@settings(max_examples=300 if IS_LONG else 60, deadline=None)
@given(
    st.sampled_from(MANY_A_DAY),
    st.sampled_from([*ZONES, "Pacific/Kwajalein", "America/Scoresbysund", "Asia/Kolkata"]),
    AFTERS | st.datetimes(datetime(1965, 1, 1), datetime(1995, 1, 1), timezones=st.just(UTC)),
    st.timedeltas(timedelta(0), 45 * DAY),
)
@example("*/15 2 * * *", "Europe/Berlin", datetime(2026, 10, 25, 1, 5, tzinfo=UTC), DAY)  # from the second pass
@example("* * * * *", "Europe/Berlin", datetime(2026, 10, 10, tzinfo=UTC), 30 * DAY)
@example("*/15 2 * * *", "Europe/Berlin", datetime(2026, 3, 28, 12, tzinfo=UTC), DAY)  # a gap without its end
@example("0 0 * * *", "Pacific/Apia", datetime(2011, 12, 28, tzinfo=UTC), 5 * DAY)  # a day is missing
@example("0 0 * * *", "Pacific/Kwajalein", datetime(1969, 9, 28, tzinfo=UTC), 5 * DAY)  # a day comes twice
def test_the_count_of_a_long_span_equals_going_from_instant_to_instant(text, zone, after, length):
    grid = cron(text, zone)
    first = grid.next_after(after, after=after)
    until = after + length
    following = takewhile(lambda at: at <= until, grid.following(first, first))
    assert grid.span(first, until).count == (1 + sum(1 for _ in following) if first <= until else 0)


@contextmanager
def noted_calls(function: Any) -> Iterator[list[FrameType]]:
    """List the calls of a function in the block."""
    calls: list[FrameType] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is function.__code__:
            calls.append(frame)

    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("text", ["* * * * *", "*/5 8-17 * * 1-5", "0 9 * * *"])
def test_a_month_of_a_rule_is_counted_without_going_through_it(text):
    began = datetime(2026, 10, 10, tzinfo=UTC)  # over a clock change
    grid = cron(text, "Europe/Berlin")
    with noted_calls(CronSim.__next__) as visited:
        due = grid.span(began, began + 30 * DAY)
    assert due.count > 20
    assert 0 < len(visited) <= 5
