from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fixtures.stores import IS_LONG
from wakeful.core.errors import LimitReached
from wakeful.core.types import FOREVER, Bounds, Pause
from wakeful.core.zones import load_zone
from wakeful.timing.bounds import PRESETS, BookingRefused, Clamped, clamp, free_from, local_day_start, next_midnight

BERLIN = "Europe/Berlin"
AMBIENT, REACTIVE, MANUAL = PRESETS["ambient"], PRESETS["reactive"], PRESETS["manual"]
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
WEEKDAYS = frozenset(range(5))


def local(text, zone=BERLIN):
    return datetime.fromisoformat(text).replace(tzinfo=load_zone(zone)).astimezone(UTC)


NOW = local("2026-07-01T12:00:30")  # a Wednesday


def pause(start, end):
    return Pause(id="p", user_id="u", agent_id="a", started_at=start, until=end, reason="")


def book(requested, bounds=AMBIENT, *, now=NOW, pauses=(), used_today=0, by="agent"):
    return clamp(requested, now, bounds, BERLIN, pauses, used_today, by)


def refusal(requested, bounds=AMBIENT, **others):
    with pytest.raises(BookingRefused) as refused:
        book(requested, bounds, **others)
    return refused.value


# ── Moved ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_allowed_time_is_kept():
    requested = local("2026-07-01T17:00")
    clamped = book(requested, used_today=2)
    assert clamped == Clamped(requested=requested, at=requested, reasons=(), remaining_today=3)
    assert not clamped.clamped


@pytest.mark.parametrize(
    ("requested", "at", "reasons"),
    [
        pytest.param("2026-07-01T10:00", "2026-07-01T13:00:30", ("past", "min_interval"), id="past"),
        pytest.param("2026-07-01T12:30", "2026-07-01T13:00:30", ("min_interval",), id="too soon"),
        pytest.param("2026-07-01T13:00:30", "2026-07-01T13:00:30", (), id="just late enough"),
        pytest.param("2026-07-01T23:30", "2026-07-02T07:00", ("quiet_hours",), id="quiet"),
        pytest.param("2026-07-08T12:00:30", "2026-07-08T12:00:30", (), id="just within the horizon"),
        pytest.param("2026-07-08T12:00:31", "2026-07-08T12:00", ("max_horizon",), id="just over the horizon"),
        pytest.param("2030-01-01T00:00", "2026-07-08T12:00", ("max_horizon",), id="far over the horizon"),
    ],
)
def test_a_time_that_does_not_fit_is_moved_and_the_moves_are_named(requested, at, reasons):
    clamped = book(local(requested))
    assert (clamped.at, clamped.reasons, clamped.clamped) == (local(at), reasons, bool(reasons))


def test_a_past_time_becomes_now_when_there_is_no_shortest_interval():
    clamped = book(NOW - DAY, replace(REACTIVE, min_interval=timedelta(0)))
    assert (clamped.at, clamped.reasons) == (NOW, ("past",))


def test_a_forbidden_day_moves_to_the_next_allowed_one():
    clamped = book(local("2026-07-04T10:00"), replace(PRESETS["project"], days=WEEKDAYS))
    assert (clamped.at, clamped.reasons) == (local("2026-07-06T07:00"), ("day_not_allowed", "quiet_hours"))


def test_quiet_hours_days_and_horizon_together_go_back_to_the_last_free_minute():
    bounds = replace(AMBIENT, days=WEEKDAYS, max_horizon=3 * DAY)  # to Saturday noon
    clamped = book(local("2026-07-03T22:30"), bounds)
    assert clamped.at == local("2026-07-03T21:59")
    assert clamped.reasons == ("quiet_hours", "day_not_allowed", "max_horizon")


def test_a_horizon_that_ends_in_quiet_hours_gives_the_minute_before_them():
    clamped = book(local("2026-07-03T12:00"), replace(AMBIENT, max_horizon=12 * HOUR))
    assert (clamped.at, clamped.reasons) == (local("2026-07-01T21:59"), ("max_horizon", "quiet_hours"))


@pytest.mark.parametrize(
    ("now", "requested", "at"),
    [
        pytest.param("2026-03-28T21:00", "2026-03-29T02:30", "2026-03-29T07:00", id="a night of eight hours"),
        pytest.param("2026-10-24T21:00", "2026-10-25T02:30", "2026-10-25T07:00", id="a night of ten hours"),
    ],
)
def test_quiet_hours_end_by_the_wall_clock_when_clocks_change(now, requested, at):
    assert book(local(requested), now=local(now)).at == local(at)


def test_a_time_at_the_end_of_the_calendar_is_clamped_like_any_other():
    assert book(datetime(9999, 12, 31, 23, 59, tzinfo=UTC)).at == local("2026-07-08T12:00")
    assert refusal(datetime(9999, 12, 31, 23, 59, tzinfo=UTC), MANUAL).reasons == ("manual",)


# ── Refused ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_manual_mode_refuses_an_agent_whatever_the_time():
    refused = refusal(local("2026-07-01T17:00"), MANUAL)
    assert (refused.reasons, refused.earliest) == (("manual",), None)
    assert isinstance(refused, LimitReached)


def test_a_pause_refuses_and_names_the_first_free_time_after_it():
    pauses = [pause(NOW - HOUR, local("2026-07-01T22:30"))]
    refused = refusal(local("2026-07-01T17:00"), pauses=pauses)
    assert (refused.reasons, refused.earliest) == (("paused",), local("2026-07-02T07:00"))
    assert "2026-07-01T17:00:00+02:00" in refused.message
    assert "2026-07-02T07:00:00+02:00" in refused.message


def test_a_pause_that_ends_with_the_horizon_leaves_that_one_instant():
    assert refusal(NOW + DAY, pauses=[pause(NOW, NOW + 7 * DAY)]).earliest == NOW + 7 * DAY


@pytest.mark.parametrize("end", [FOREVER, NOW + 8 * DAY])
def test_a_pause_beyond_the_horizon_has_no_earliest_time(end):
    refused = refusal(local("2026-07-01T17:00"), pauses=[pause(NOW - HOUR, end)])
    assert (refused.reasons, refused.earliest) == (("paused",), None)
    assert "No time is acceptable" in refused.message


def test_a_time_after_the_pause_is_fine():
    assert not book(local("2026-07-02T12:00"), pauses=[pause(NOW, NOW + HOUR)]).clamped


def test_a_used_up_day_refuses_and_names_tomorrows_first_free_time():
    refused = refusal(local("2026-07-01T17:00"), used_today=6)
    assert (refused.reasons, refused.earliest) == (("daily_cap",), local("2026-07-02T07:00"))


def test_a_used_up_day_does_not_refuse_a_later_day():
    clamped = book(local("2026-07-02T12:00"), used_today=6)
    assert (clamped.at, clamped.remaining_today) == (local("2026-07-02T12:00"), 0)


def test_a_time_that_quiet_hours_move_to_tomorrow_is_not_held_by_todays_cap():
    assert book(local("2026-07-01T23:00"), used_today=6).at == local("2026-07-02T07:00")


def test_a_cap_of_zero_refuses_every_day():
    refused = refusal(local("2026-07-02T12:00"), replace(AMBIENT, daily_cap=0))
    assert (refused.reasons, refused.earliest) == (("daily_cap",), None)


def test_a_paused_and_used_up_day_names_both_and_a_time_free_of_both():
    refused = refusal(local("2026-07-01T17:00"), used_today=6, pauses=[pause(NOW, NOW + 10 * HOUR)])
    assert (refused.reasons, refused.earliest) == (("paused", "daily_cap"), local("2026-07-02T07:00"))


def test_a_horizon_with_no_free_minute_refuses():
    bounds = replace(AMBIENT, max_horizon=2 * HOUR)
    refused = refusal(local("2026-07-02T12:00"), bounds, now=local("2026-07-01T23:00"))
    assert (refused.reasons, refused.earliest) == (("max_horizon", "quiet_hours"), None)


def test_a_day_is_used_up_in_the_agents_zone():
    late = local("2026-07-01T23:50")  # still Wednesday in Berlin, and in UTC as well
    bounds = replace(REACTIVE, daily_cap=1)
    assert refusal(late + 5 * MINUTE, bounds, now=late, used_today=1).earliest == local("2026-07-02T00:00")
    assert book(local("2026-07-02T00:00"), bounds, now=late, used_today=1).at == local("2026-07-02T00:00")


# ── What is left, and people ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("requested", "used", "remaining"),
    [("2026-07-01T17:00", 0, 5), ("2026-07-01T17:00", 5, 0), ("2026-07-02T17:00", 5, 1)],
)
def test_what_remains_today_counts_this_booking_only_if_it_is_for_today(requested, used, remaining):
    assert book(local(requested), used_today=used).remaining_today == remaining


@pytest.mark.parametrize("by", ["user", "system"])
@pytest.mark.parametrize(
    ("requested", "at", "reasons"),
    [
        pytest.param("2026-07-01T12:01", "2026-07-01T12:01", (), id="soon"),
        pytest.param("2026-07-01T23:30", "2026-07-01T23:30", (), id="quiet hours"),
        pytest.param("2026-07-01T10:00", "2026-07-01T12:00:30", ("past",), id="past"),
        pytest.param("2026-07-20T10:00", "2026-07-08T12:00:30", ("max_horizon",), id="over the horizon"),
    ],
)
def test_a_person_is_held_only_by_the_present_and_the_horizon(requested, at, reasons, by):
    pauses = [pause(NOW - HOUR, FOREVER)]
    clamped = book(local(requested), replace(MANUAL, quiet_from=time(22), quiet_to=time(7)), pauses=pauses, by=by)
    assert (clamped.at, clamped.reasons, clamped.remaining_today) == (local(at), reasons, 0)


# ── Always ──────────────────────────────────────────────────────────────────────────────────────────────────────────

TIMES = st.times().map(lambda clock: clock.replace(second=0, microsecond=0))
QUIET = st.just((None, None)) | st.tuples(TIMES, TIMES).filter(lambda ends: ends[0] != ends[1])
BOUNDS = st.builds(
    lambda quiet, days, horizon, share, cap: Bounds(
        mode="project",
        max_horizon=horizon,
        min_interval=horizon * share / 10,
        daily_cap=cap,
        quiet_from=quiet[0],
        quiet_to=quiet[1],
        days=days,
    ),
    QUIET,
    st.frozensets(st.integers(0, 6), min_size=1),
    st.timedeltas(MINUTE, 20 * DAY),
    st.integers(0, 10),
    st.integers(0, 3),
)
NOWS = st.datetimes(datetime(2025, 1, 1), datetime(2028, 1, 1), timezones=st.just(UTC)) | st.builds(
    lambda day, shift: day + shift,
    st.sampled_from([datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)]),
    st.timedeltas(timedelta(0), DAY),
)
SHIFTS = st.timedeltas(-2 * DAY, 30 * DAY)
PAUSES = st.lists(st.tuples(st.timedeltas(-DAY, 9 * DAY), st.timedeltas(timedelta(0), 5 * DAY)), max_size=3)
ZONES = st.sampled_from([BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"])


@settings(max_examples=400 if IS_LONG else 120, deadline=None)
@given(BOUNDS, NOWS, SHIFTS, PAUSES, ZONES, st.integers(0, 4))
def test_what_is_given_is_allowed_and_what_is_named_as_earliest_is_given(bounds, now, shift, offsets, zone, used):
    pauses = [pause(now + start, now + start + length) for start, length in offsets]
    earliest = None
    try:
        given_time = clamp(now + shift, now, bounds, zone, pauses, used, "agent")
    except BookingRefused as refused:
        earliest = refused.earliest
        if earliest is None:
            return
        given_time = clamp(earliest, now, bounds, zone, pauses, used, "agent")
    assert earliest is None or (given_time.at, given_time.reasons) == (earliest, ())
    at = given_time.at
    assert now + bounds.min_interval <= at <= now + bounds.max_horizon
    assert free_from(at, bounds, zone, pauses) == (at, ())
    assert used < bounds.daily_cap or at >= next_midnight(now, zone)
    assert given_time.clamped == (at != given_time.requested)
    assert clamp(at, now, bounds, zone, pauses, used, "agent").reasons == ()


@settings(deadline=None)
@given(BOUNDS, NOWS, SHIFTS, ZONES)
def test_a_move_back_from_the_horizon_leaves_no_free_minute_out(bounds, now, shift, zone):
    try:
        moved = clamp(now + shift, now, replace(bounds, daily_cap=9), zone, (), 0, "agent")
    except BookingRefused:
        return
    assume("max_horizon" in moved.reasons)
    following = free_from(moved.at + MINUTE, bounds, zone, ())[0]
    assert following > now + bounds.max_horizon


@given(BOUNDS, NOWS, SHIFTS)
def test_a_person_is_never_refused(bounds, now, shift):
    at = clamp(now + shift, now, bounds, BERLIN, (), 9, "user").at
    assert now <= at <= now + bounds.max_horizon
    assert local_day_start(at, BERLIN) <= at
