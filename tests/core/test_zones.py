from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.errors import Invalid
from wakeful.core.zones import BadOffset, UnknownZone, clock_change, load_zone, offset_zone, resolve_wall_clock


def test_a_zone_is_loaded_by_its_iana_name():
    assert load_zone("Europe/Berlin") == ZoneInfo("Europe/Berlin")


def test_a_zone_is_loaded_once():
    assert load_zone("Asia/Kathmandu") is load_zone("Asia/Kathmandu")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Mars/Phobos",
        "europe/berlin",
        " UTC",
        "+02:00",
        "right/Europe/Berlin",
        "localtime",
        "Europe",
        "../UTC",
        "a\0b",
    ],
)
def test_anything_but_an_iana_name_is_refused(name):
    with pytest.raises(UnknownZone) as refused:
        load_zone(name)
    assert repr(name) in refused.value.message
    assert refused.value.field == "timezone"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("europe/berlin", "Europe/Berlin"),
        ("Europe/Berln", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("Asia/Katmandoo", "Asia/Katmandu"),
    ],
)
def test_the_nearest_known_zone_is_named(name, nearest):
    with pytest.raises(UnknownZone, match=nearest):
        load_zone(name)


@given(st.text(max_size=300))
def test_no_zone_name_raises_anything_but_a_domain_error(name):
    try:
        zone = load_zone(name)
    except UnknownZone:
        return
    assert zone.key == name


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("+00:00", timedelta(0)),
        ("+05:45", timedelta(hours=5, minutes=45)),
        ("-09:30", -timedelta(hours=9, minutes=30)),
        ("+14:00", timedelta(hours=14)),
        ("-14:00", -timedelta(hours=14)),
    ],
)
def test_an_offset_becomes_a_fixed_zone(text, offset):
    assert offset_zone(text) == timezone(offset)


@pytest.mark.parametrize("text", ["+14:01", "-14:30", "+99:00", "+02:60", "02:00", "+2:00", "+0200", "Z", "", "+٠٢:00"])
def test_an_offset_beyond_14_hours_or_in_another_form_is_refused(text):
    with pytest.raises(BadOffset) as refused:
        offset_zone(text)
    assert repr(text) in refused.value.message
    assert isinstance(refused.value, Invalid)


@pytest.mark.parametrize(
    ("zone", "local", "shown"),
    [
        ("Europe/Berlin", "2026-07-01T09:00", "2026-07-01T09:00:00+02:00"),
        ("Europe/Berlin", "2026-03-29T02:30", "2026-03-29T03:00:00+02:00"),
        ("Europe/Berlin", "2026-03-29T02:00", "2026-03-29T03:00:00+02:00"),
        ("America/New_York", "2026-03-08T02:59:59", "2026-03-08T03:00:00-04:00"),
        ("Australia/Lord_Howe", "2026-10-04T02:10", "2026-10-04T02:30:00+11:00"),
        ("America/Sao_Paulo", "2017-10-15T00:00", "2017-10-15T01:00:00-02:00"),
        ("Africa/Casablanca", "2026-03-22T02:30", "2026-03-22T03:00:00+01:00"),
        ("Pacific/Apia", "2011-12-30T09:00", "2011-12-31T00:00:00+14:00"),
    ],
)
def test_a_wall_clock_in_a_gap_is_the_first_instant_after_it(zone, local, shown):
    at = resolve_wall_clock(datetime.fromisoformat(local), load_zone(zone))
    assert at.tzinfo is UTC
    assert at.astimezone(load_zone(zone)).isoformat() == shown


@pytest.mark.parametrize(
    ("zone", "local", "at"),
    [
        ("Europe/Berlin", "2026-10-25T02:30", "2026-10-25T00:30Z"),
        ("America/New_York", "2026-11-01T01:30", "2026-11-01T05:30Z"),
        ("Australia/Lord_Howe", "2026-04-05T01:45", "2026-04-04T14:45Z"),
        ("America/Sao_Paulo", "2018-02-17T23:30", "2018-02-18T01:30Z"),
    ],
)
def test_a_wall_clock_that_comes_twice_is_the_first(zone, local, at):
    assert resolve_wall_clock(datetime.fromisoformat(local), load_zone(zone)) == datetime.fromisoformat(at)


def test_a_fold_of_the_given_time_does_not_matter():
    berlin = load_zone("Europe/Berlin")
    local = datetime(2026, 10, 25, 2, 30)
    assert resolve_wall_clock(local.replace(fold=1), berlin) == resolve_wall_clock(local, berlin)


@given(
    st.sampled_from(sorted(available_timezones() - {"localtime", "Factory"})),
    st.datetimes(datetime(2000, 1, 1), datetime(2040, 1, 1)),
    st.timedeltas(timedelta(0), timedelta(days=2)),
)
def test_later_wall_clocks_are_never_earlier_instants(name, local, later):
    zone = load_zone(name)
    assert resolve_wall_clock(local, zone) <= resolve_wall_clock(local + later, zone)


def test_a_clock_change_is_found_to_the_second():
    berlin = load_zone("Europe/Berlin")
    midnight = datetime(2026, 3, 29, tzinfo=UTC)
    change = datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert clock_change(berlin, midnight, midnight + timedelta(days=1)) == change
    assert clock_change(berlin, change - timedelta(microseconds=1), change) == change
    assert clock_change(berlin, change, midnight + timedelta(days=1)) is None
