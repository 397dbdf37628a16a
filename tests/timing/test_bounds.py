from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful.core.types import FOREVER, Pause
from wakeful.core.zones import load_zone
from wakeful.timing.bounds import (
    PRESETS,
    BadBounds,
    check_bounds,
    free_from,
    is_customised,
    local_day_start,
    next_midnight,
)

BERLIN = "Europe/Berlin"
AMBIENT, REACTIVE = PRESETS["ambient"], PRESETS["reactive"]
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
WEEKDAYS = frozenset(range(5))


def local(text, zone=BERLIN):
    return datetime.fromisoformat(text).replace(tzinfo=load_zone(zone)).astimezone(UTC)


def quiet(start, end, **others):
    return replace(REACTIVE, quiet_from=time.fromisoformat(start), quiet_to=time.fromisoformat(end), **others)


def forbidden_until(bounds, zone, at):
    """When quiet hours and forbidden days let go, and which held first."""
    free_at, reasons = free_from(at, bounds, zone, ())
    return (free_at, reasons[0]) if reasons else None


def pause(start, end):
    return Pause(id="p", user_id="u", agent_id="a", started_at=start, until=end, reason="")


# ── Modes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("mode", "horizon", "interval", "cap", "quiet_hours"),
    [
        ("ambient", 7 * DAY, HOUR, 6, (time(22), time(7))),
        ("reactive", DAY, HOUR / 12, 48, (None, None)),
        ("project", 30 * DAY, HOUR, 4, (time(22), time(7))),
        ("manual", 7 * DAY, HOUR / 4, 0, (None, None)),
    ],
)
def test_a_mode_sets_all_bounds(mode, horizon, interval, cap, quiet_hours):
    bounds = PRESETS[mode]
    assert (bounds.mode, bounds.max_horizon, bounds.min_interval, bounds.daily_cap) == (mode, horizon, interval, cap)
    assert (bounds.quiet_from, bounds.quiet_to) == quiet_hours
    assert bounds.days == frozenset(range(7))
    check_bounds(bounds)


def test_edited_bounds_are_customised():
    assert not is_customised(AMBIENT)
    assert is_customised(replace(AMBIENT, daily_cap=7))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"quiet_from": None}, "quiet_to"),
        ({"quiet_to": None}, "quiet_to"),
        ({"quiet_to": time(22)}, "quiet_to"),
        ({"days": frozenset[int]()}, "days"),
        ({"days": frozenset({7})}, "days"),
        ({"max_horizon": timedelta(0), "min_interval": timedelta(0)}, "max_horizon"),
        ({"max_horizon": HOUR / 2}, "max_horizon"),
        ({"max_horizon": timedelta(days=100_000)}, "max_horizon"),
        ({"min_interval": -HOUR}, "min_interval"),
        ({"daily_cap": -1}, "daily_cap"),
    ],
)
def test_bounds_that_contradict_themselves_are_refused_by_field(changes, field):
    with pytest.raises(BadBounds) as refused:
        check_bounds(replace(AMBIENT, **changes))
    assert refused.value.field == field


# ── Free time ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("at", "until"),
    [
        ("2026-07-01T21:59:59", None),
        ("2026-07-01T22:00", "2026-07-02T07:00"),
        ("2026-07-02T00:00", "2026-07-02T07:00"),
        ("2026-07-02T06:59:59", "2026-07-02T07:00"),
        ("2026-07-02T07:00", None),
    ],
)
def test_quiet_hours_may_cross_midnight(at, until):
    expected = None if until is None else (local(until), "quiet_hours")
    assert forbidden_until(AMBIENT, BERLIN, local(at)) == expected


@pytest.mark.parametrize(
    ("at", "until"), [("2026-07-01T11:59", None), ("2026-07-01T12:00", "2026-07-01T14:00"), ("2026-07-01T14:00", None)]
)
def test_quiet_hours_may_lie_within_a_day(at, until):
    expected = None if until is None else (local(until), "quiet_hours")
    assert forbidden_until(quiet("12:00", "14:00"), BERLIN, local(at)) == expected


def test_quiet_hours_may_last_until_midnight():
    bounds = quiet("22:00", "00:00")
    assert forbidden_until(bounds, BERLIN, local("2026-07-01T23:00")) == (local("2026-07-02T00:00"), "quiet_hours")
    assert forbidden_until(bounds, BERLIN, local("2026-07-02T00:00")) is None


def test_a_forbidden_weekend_ends_on_monday_at_midnight():
    bounds = replace(REACTIVE, days=WEEKDAYS)
    assert forbidden_until(bounds, BERLIN, local("2026-07-04T10:00")) == (local("2026-07-06T00:00"), "day_not_allowed")


def test_quiet_hours_into_a_weekend_end_after_mondays_quiet_hours():
    bounds = replace(AMBIENT, days=WEEKDAYS)
    assert forbidden_until(bounds, BERLIN, local("2026-07-03T23:00")) == (local("2026-07-06T07:00"), "quiet_hours")
    assert forbidden_until(bounds, BERLIN, local("2026-07-04T12:00")) == (local("2026-07-06T07:00"), "day_not_allowed")


@pytest.mark.parametrize(
    ("bounds", "at", "until"),
    [
        pytest.param(quiet("22:00", "02:30"), "2026-03-29T00:30Z", "2026-03-29T01:00Z", id="ends in a gap"),
        pytest.param(quiet("02:10", "02:50"), "2026-03-29T00:59Z", None, id="in a gap: before"),
        pytest.param(quiet("02:10", "02:50"), "2026-03-29T01:00Z", None, id="in a gap: after"),
        pytest.param(quiet("22:00", "02:30"), "2026-10-25T00:29Z", "2026-10-25T00:30Z", id="ends in a repeated hour"),
        pytest.param(quiet("22:00", "02:30"), "2026-10-25T01:10Z", None, id="does not come back in the second pass"),
        pytest.param(
            quiet("02:30", "07:00"), "2026-10-25T01:10Z", "2026-10-25T06:00Z", id="is not torn by the second pass"
        ),
    ],
)
def test_quiet_hours_survive_clock_changes(bounds, at, until):
    expected = None if until is None else (datetime.fromisoformat(until), "quiet_hours")
    assert forbidden_until(bounds, BERLIN, datetime.fromisoformat(at)) == expected


def test_without_bounds_only_pauses_count():
    at = local("2026-07-01T23:00")
    assert free_from(at, None, BERLIN, ()) == (at, ())
    assert free_from(at, None, BERLIN, [pause(at, at + HOUR)]) == (at + HOUR, ("paused",))


def test_a_pause_holds_its_beginning_but_not_its_end():
    at = local("2026-07-01T12:00")
    assert free_from(at, None, BERLIN, [pause(at - HOUR, at)]) == (at, ())
    assert free_from(at, None, BERLIN, [pause(at + HOUR, at + 2 * HOUR)]) == (at, ())


def test_reasons_are_given_in_the_order_met():
    pauses = [
        pause(local("2026-07-06T06:00"), local("2026-07-06T09:00")),
        pause(local("2026-07-03T12:00"), local("2026-07-03T23:00")),
    ]
    assert free_from(local("2026-07-03T13:00"), replace(AMBIENT, days=WEEKDAYS), BERLIN, pauses) == (
        local("2026-07-06T09:00"),
        ("paused", "quiet_hours", "day_not_allowed"),
    )


def test_an_indefinite_pause_is_forever():
    at = local("2026-07-01T12:00")
    assert free_from(at, AMBIENT, BERLIN, [pause(at, FOREVER)]) == (FOREVER, ("paused",))


def test_bounds_that_never_allow_anything_are_forever_and_do_not_hang():
    bounds = replace(AMBIENT, days=frozenset[int]())
    assert free_from(local("2026-07-01T12:00"), bounds, BERLIN, ()) == (FOREVER, ("day_not_allowed", "quiet_hours"))


# ── Days ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("zone", "at", "start", "end"),
    [
        (BERLIN, "2026-07-01T12:00Z", "2026-06-30T22:00Z", "2026-07-01T22:00Z"),
        (BERLIN, "2026-07-01T21:59:59Z", "2026-06-30T22:00Z", "2026-07-01T22:00Z"),
        (BERLIN, "2026-07-01T22:00Z", "2026-07-01T22:00Z", "2026-07-02T22:00Z"),
        pytest.param(BERLIN, "2026-03-29T12:00Z", "2026-03-28T23:00Z", "2026-03-29T22:00Z", id="23 hours"),
        pytest.param(BERLIN, "2026-10-25T12:00Z", "2026-10-24T22:00Z", "2026-10-25T23:00Z", id="25 hours"),
        pytest.param(
            "America/Sao_Paulo", "2017-10-15T12:00Z", "2017-10-15T03:00Z", "2017-10-16T02:00Z", id="begins at 01:00"
        ),
        pytest.param(
            "Pacific/Apia", "2011-12-29T12:00Z", "2011-12-29T10:00Z", "2011-12-30T10:00Z", id="tomorrow is lost"
        ),
    ],
)
def test_a_local_day_has_its_own_beginning_and_end(zone, at, start, end):
    at = datetime.fromisoformat(at)
    assert local_day_start(at, zone) == datetime.fromisoformat(start)
    assert next_midnight(at, zone) == datetime.fromisoformat(end)


ZONES = st.sampled_from(
    [BERLIN, "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Kathmandu", "UTC"]
)
INSTANTS = st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))


@given(INSTANTS, ZONES)
def test_every_instant_lies_in_its_day(at, zone):
    assert local_day_start(at, zone) <= at < next_midnight(at, zone)
    assert local_day_start(next_midnight(at, zone), zone) == next_midnight(at, zone)


TIMES = st.times().map(lambda clock: clock.replace(second=0, microsecond=0))


@settings(deadline=None)
@given(
    st.tuples(TIMES, TIMES).filter(lambda ends: ends[0] != ends[1]),
    st.frozensets(st.integers(0, 6), min_size=1),
    INSTANTS,
    ZONES,
    st.lists(st.tuples(st.timedeltas(-DAY, 9 * DAY), st.timedeltas(timedelta(0), 3 * DAY)), max_size=4),
)
def test_free_time_is_free_and_nothing_before_it_is(ends, days, at, zone, offsets):
    bounds = replace(REACTIVE, quiet_from=ends[0], quiet_to=ends[1], days=days)
    pauses = [pause(at + start, at + start + length) for start, length in offsets]
    free_at, reasons = free_from(at, bounds, zone, pauses)
    assert at <= free_at < FOREVER
    assert bool(reasons) == (free_at > at)
    assert free_from(free_at, bounds, zone, pauses) == (free_at, ())
    for step in range(20):
        before = at + (free_at - at) * step / 20
        assert before >= free_at or free_from(before, bounds, zone, pauses)[0] == free_at
