from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fixtures.stores import IS_LONG
from wakeful.core.zones import UnknownZone, load_zone, offset_zone
from wakeful.timing.when import (
    FORMS,
    MAX_LENGTH,
    BadWhen,
    When,
    WhenAmbiguous,
    WhenNeedsZone,
    WhenPast,
    WhenTooFar,
    WhenUnreadable,
    parse_when,
)

BERLIN = "Europe/Berlin"
NOW = datetime(2026, 7, 1, 8, 0, tzinfo=UTC)  # a Wednesday, 10:00 in Berlin


def at_berlin(text, now=NOW):
    """Return the local time that the text means."""
    when = parse_when(text, now, BERLIN)
    return when.at.astimezone(load_zone(BERLIN)).strftime("%Y-%m-%dT%H:%M:%S").removesuffix(":00")


def now_in(zone, local):
    return datetime.fromisoformat(local).replace(tzinfo=load_zone(zone)).astimezone(UTC)


@pytest.mark.parametrize("zone", [None, BERLIN])
@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        *(("30m", 30), ("2h 15m", 135), ("1d12h", 2160), ("1.5h", 90), ("90 seconds", 1.5), ("in 3 hours", 180)),
        *(("in half an hour", 30), ("in a week", 10080), ("in an hour and a half", 90), ("  IN   3  Hours ", 180)),
        *(("in twenty minutes", 20), ("in twenty-five minutes", 25), ("twenty five minutes", 25), ("½ hour", 30)),
        *(("quarter of an hour", 15), ("in a quarter of an hour", 15), ("three quarters of an hour", 45)),
        *(("1½ hours", 90), ("1 ½ hours", 90), ("an hour and a quarter", 75), ("30m.", 30), ("In twenty minutes.", 20)),
    ],
)
def test_a_length_counts_from_now_and_needs_no_zone(text, minutes, zone):
    assert parse_when(text, NOW, zone) == When(at=NOW + timedelta(minutes=minutes), wall_clock=None)


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("tomorrow at 09:00", "2026-07-02T09:00"),
        ("tomorrow 9am", "2026-07-02T09:00"),
        ("tomorrow at 9", "2026-07-02T09:00"),
        ("tomorrow", "2026-07-02T09:00"),
        ("tomorrow 12am", "2026-07-02T00:00"),
        ("tomorrow 12pm", "2026-07-02T12:00"),
        ("tomorrow at noon", "2026-07-02T12:00"),
        ("tomorrow 9:30 p.m.", "2026-07-02T21:30"),
        ("tomorrow 09:00:30", "2026-07-02T09:00:30"),
        ("9am tomorrow", "2026-07-02T09:00"),
        ("today 18:30", "2026-07-01T18:30"),
        ("today at 6pm", "2026-07-01T18:00"),
        ("tonight", "2026-07-01T20:00"),
        ("tonight at 8", "2026-07-01T20:00"),
        ("tonight at 8:30", "2026-07-01T20:30"),
        ("tonight at 5", "2026-07-01T17:00"),
        ("tonight at 11", "2026-07-01T23:00"),
        ("tonight at 11pm", "2026-07-01T23:00"),
        ("tonight 22:15", "2026-07-01T22:15"),
        ("8pm tonight", "2026-07-01T20:00"),
        ("tonight at midnight", "2026-07-02T00:00"),
        ("noon", "2026-07-01T12:00"),
        ("midnight", "2026-07-02T00:00"),
        ("end of day", "2026-07-01T18:00"),
        ("by the end of the day", "2026-07-01T18:00"),
        ("friday", "2026-07-03T09:00"),
        ("friday 14:30", "2026-07-03T14:30"),
        ("on friday at noon", "2026-07-03T12:00"),
        ("at 9 on friday", "2026-07-03T09:00"),
        ("Mon", "2026-07-06T09:00"),
        ("tuesday 8am", "2026-07-07T08:00"),
        ("next monday at 9", "2026-07-06T09:00"),
        ("next friday", "2026-07-10T09:00"),
        ("next sunday", "2026-07-12T09:00"),
        ("this friday", "2026-07-03T09:00"),
        ("this friday at 14:30", "2026-07-03T14:30"),
        ("this wednesday at noon", "2026-07-01T12:00"),
        ("this evening", "2026-07-01T18:00"),
        ("this evening at 8", "2026-07-01T20:00"),
        ("at 7 this evening", "2026-07-01T19:00"),
        ("tomorrow morning", "2026-07-02T09:00"),
        ("tomorrow morning at 7:30", "2026-07-02T07:30"),
        ("tomorrow evening", "2026-07-02T18:00"),
        ("tomorrow evening at 9", "2026-07-02T21:00"),
        ("friday evening", "2026-07-03T18:00"),
        ("next monday morning", "2026-07-06T09:00"),
        ("day after tomorrow", "2026-07-03T09:00"),
        ("the day after tomorrow at 18:30", "2026-07-03T18:30"),
        ("day after tomorrow morning", "2026-07-03T09:00"),
        ("tomorrow at 9.", "2026-07-02T09:00"),
        ("tomorrow 9 a.m.", "2026-07-02T09:00"),
        ("18:30", "2026-07-01T18:30"),
        ("at 9am", "2026-07-02T09:00"),
        ("10:00", "2026-07-02T10:00"),
        ("  TOMORROW\tAt  09:00 ", "2026-07-02T09:00"),
    ],
)
def test_words_mean_a_wall_clock_in_the_zone(text, local):
    assert at_berlin(text) == local
    assert parse_when(text, NOW, BERLIN).wall_clock == local


@pytest.mark.parametrize(
    ("text", "now", "local"),
    [
        pytest.param("wednesday", "2026-07-01T08:59", "2026-07-01T09:00", id="today, still ahead"),
        pytest.param("wednesday", "2026-07-01T09:00", "2026-07-08T09:00", id="today, no longer ahead"),
        pytest.param("wednesday 14:30", "2026-07-01T10:00", "2026-07-01T14:30", id="today by its time"),
        pytest.param("next wednesday", "2026-07-01T08:00", "2026-07-08T09:00", id="next is never today"),
        pytest.param(
            "next monday", "2026-07-05T12:00", "2026-07-06T09:00", id="next monday said on sunday is tomorrow"
        ),
        pytest.param("noon", "2026-07-01T12:00", "2026-07-02T12:00", id="noon at noon is tomorrow's"),
        pytest.param("midnight", "2026-07-01T00:00", "2026-07-02T00:00", id="midnight at midnight is the coming one"),
        pytest.param("tonight", "2026-07-01T00:30", "2026-07-01T20:00", id="tonight said after midnight"),
        pytest.param("tomorrow", "2026-12-31T23:59", "2027-01-01T09:00", id="tomorrow is next year"),
    ],
)
def test_a_word_depends_on_the_local_now(text, now, local):
    assert at_berlin(text, now_in(BERLIN, now)) == local


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-11-16T09:00:00Z", "2026-11-16T09:00Z"),
        ("2026-11-16t09:00z", "2026-11-16T09:00Z"),
        ("2026-11-16T09:00:00+01:00", "2026-11-16T08:00Z"),
        ("2026-11-16 09:00-0500", "2026-11-16T14:00Z"),
        ("2026-11-16T09:00:00.123456789+05:30", "2026-11-16T03:30:00.123456Z"),
        ("20261116T090000Z", "2026-11-16T09:00Z"),
    ],
)
def test_an_iso_time_with_an_offset_is_that_instant_whatever_the_zone(text, at):
    expected = When(at=datetime.fromisoformat(at), wall_clock=None)
    assert parse_when(text, NOW, None) == expected
    assert parse_when(text, NOW, "Asia/Kathmandu") == expected


def test_an_iso_time_without_an_offset_is_a_wall_clock():
    when = parse_when("2026-11-16T09:00", NOW, "Asia/Kathmandu")
    assert when == When(at=datetime(2026, 11, 16, 3, 15, tzinfo=UTC), wall_clock="2026-11-16T09:00")


@pytest.mark.parametrize("text", ["noon", "tomorrow at 9", "friday", "2026-11-16T09:00", "end of day", "18:30"])
def test_a_wall_clock_without_a_zone_is_refused_and_the_error_says_so(text):
    with pytest.raises(WhenNeedsZone, match="no time zone is known"):
        parse_when(text, NOW, None)


@pytest.mark.parametrize(
    ("text", "at", "zone"),
    [
        ("tomorrow at 9 UTC", "2026-07-02T09:00Z", "UTC"),
        ("tomorrow at 9 gmt", "2026-07-02T09:00Z", "UTC"),
        ("noon america/new_york", "2026-07-01T16:00Z", "America/New_York"),
        ("this evening Asia/Tokyo", "2026-07-01T09:00Z", "Asia/Tokyo"),
        ("18:30 +05:45", "2026-07-01T12:45Z", None),
        ("18:30 UTC+2", "2026-07-01T16:30Z", None),
        ("2026-11-16 09:00 Asia/Kathmandu", "2026-11-16T03:15Z", "Asia/Kathmandu"),
    ],
)
@pytest.mark.parametrize("known", [None, BERLIN])
def test_a_zone_in_the_text_wins_over_any_other(text, at, zone, known):
    when = parse_when(text, NOW, known)
    assert (when.at, when.zone) == (datetime.fromisoformat(at), zone)
    assert when.wall_clock is not None


def test_the_day_is_the_one_of_the_zone_in_the_text():
    late = datetime(2026, 7, 1, 23, 0, tzinfo=UTC)  # already Thursday in Berlin
    assert parse_when("tomorrow at 9 UTC", late, BERLIN).at == datetime(2026, 7, 2, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize("text", ["tomorrow at 9 Mars/Phobos", "noon +15:00", "noon UTC+99"])
def test_a_zone_in_the_text_that_is_nowhere_is_refused_by_its_name(text):
    with pytest.raises(WhenUnreadable, match="no such time zone"):
        parse_when(text, NOW, BERLIN)


def test_a_weekday_of_this_week_is_ambiguous_on_that_day():
    with pytest.raises(WhenAmbiguous, match="today"):
        parse_when("this wednesday", NOW, BERLIN)


def test_a_clock_that_a_gap_moves_says_so():
    moved = parse_when("tomorrow 02:30", now_in(BERLIN, "2026-03-28T12:00"), BERLIN)
    assert moved.moved_by == ("clock_change",)
    assert parse_when("tomorrow 03:00", now_in(BERLIN, "2026-03-28T12:00"), BERLIN).moved_by == ()


@pytest.mark.parametrize("example", [each for form in FORMS for each in form.examples])
def test_every_form_that_is_listed_is_accepted(example):
    early = now_in(BERLIN, "2026-07-02T08:00")  # a Thursday; the ISO examples are later
    assert parse_when(example, early, BERLIN).at > early


def test_a_zone_may_be_an_offset():
    when = parse_when("tomorrow 9am", NOW, offset_zone("+05:45"))
    assert when == When(at=datetime(2026, 7, 2, 3, 15, tzinfo=UTC), wall_clock="2026-07-02T09:00")


def test_an_unknown_zone_is_refused_even_when_none_is_needed():
    with pytest.raises(UnknownZone):
        parse_when("30m", NOW, "Mars/Phobos")


def test_now_may_be_in_any_zone():
    assert parse_when("30m", NOW.astimezone(timezone(timedelta(hours=9))), None).at == NOW + timedelta(minutes=30)


@pytest.mark.parametrize(
    ("zone", "now", "text", "at"),
    [
        pytest.param(BERLIN, "2026-03-28T12:00", "tomorrow 02:30", "2026-03-29T01:00Z", id="gap: first minute after"),
        pytest.param(BERLIN, "2026-03-28T12:00", "2026-03-29T02:59", "2026-03-29T01:00Z", id="gap, in ISO"),
        pytest.param(BERLIN, "2026-10-24T12:00", "tomorrow 02:30", "2026-10-25T00:30Z", id="fold: the first"),
        pytest.param(BERLIN, "2026-03-28T12:00", "1d", "2026-03-29T11:00Z", id="a day is 24 hours"),
        pytest.param(BERLIN, "2026-03-28T12:00", "tomorrow 12:00", "2026-03-29T10:00Z", id="tomorrow noon is 23 away"),
        pytest.param("America/Sao_Paulo", "2017-10-14T12:00", "midnight", "2017-10-15T03:00Z", id="no midnight"),
        pytest.param("Australia/Lord_Howe", "2026-10-03T12:00", "tomorrow 2am", "2026-10-03T15:30Z", id="half an hour"),
        pytest.param("Pacific/Apia", "2011-12-29T12:00", "tomorrow", "2011-12-30T10:00Z", id="tomorrow never comes"),
    ],
)
def test_clock_changes_lose_and_repeat_nothing(zone, now, text, at):
    assert parse_when(text, now_in(zone, now), zone).at == datetime.fromisoformat(at)


def test_the_wall_clock_in_a_gap_keeps_what_was_said():
    assert parse_when("2027-03-28T02:30", NOW, BERLIN).wall_clock == "2027-03-28T02:30"


def test_a_time_in_the_second_pass_of_a_repeated_hour_is_past():
    second_pass = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)  # 02:10, for the second time
    with pytest.raises(WhenPast):
        parse_when("today 02:30", second_pass, BERLIN)


@pytest.mark.parametrize(
    ("text", "now"),
    [
        ("today 09:00", "2026-07-01T09:00"),
        ("today 09:00", "2026-07-01T15:00"),
        ("tonight", "2026-07-01T20:00"),
        ("this evening", "2026-07-01T18:00"),
        ("this evening", "2026-07-01T21:00"),
        ("this morning", "2026-07-01T10:00"),
        ("this monday", "2026-07-01T10:00"),
        ("this wednesday at 9", "2026-07-01T10:00"),
        ("today 09:00 UTC", "2026-07-01T12:00"),
        ("end of day", "2026-07-01T18:01"),
        ("2026-07-01T09:00", "2026-07-01T10:00"),
        ("2026-07-01T09:00Z", "2026-07-01T12:00"),
        ("2020-02-29T09:00Z", "2026-07-01T12:00"),
        ("0m", "2026-07-01T12:00"),
        ("0.0000001s", "2026-07-01T12:00"),
    ],
)
def test_what_is_not_ahead_is_refused_and_never_moved_to_tomorrow(text, now):
    with pytest.raises(WhenPast, match="not in the future"):
        parse_when(text, now_in(BERLIN, now), BERLIN)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "   ",
            "soon",
            "now",
            "yesterday",
            "foo bar",
            "9",
            "at 9",
            "today",
            "this",
            "this week",
            "in a month",
            "2026-11-16",
        ),
        *(
            "25:00",
            "tomorrow 25:00",
            "tomorrow 9:75",
            "tomorrow 13pm",
            "tomorrow 0am",
            "tomorrow 24",
            "9:5",
            "tomorrow 900",
        ),
        *("tonight at 3", "tonight 9am", "tonight at 2am", "tonight noon", "friday midnight", "tomorrow at midnight"),
        *(
            "-5m",
            "in -5 minutes",
            "5m ago",
            "tomorrow at",
            "at",
            "next",
            "next week",
            "tomorrow 9am friday",
            "9am 10am",
        ),
        *(
            "2026-02-30T09:00Z",
            "2026-11-16T24:00Z",
            "2026-11-16T09:60Z",
            "2026-11-16T09:00+15:00",
            "2026-11-16T09:00+24:00",
        ),
        *(
            "2026-11-16T09:00+05:99",
            "2026-W47-1T09:00",
            "2026-11-16x09:00",
            "0000-01-01T00:00Z",
            "2026-11-16T09:00 CET",
        ),
        *("1793782800", "tomorrow ٩am", "*/5 * * * *"),
        *(
            "tomorrow afternoon",
            "this afternoon",
            "this tomorrow",
            "tonight evening",
            "tomorrow night",
            "next tomorrow",
        ),
        *("tomorrow morning at 9pm", "tomorrow morning at noon", "this evening at 9am", "this evening at 3", "morning"),
        *("in 3 hours UTC", "30m UTC", "UTC", "tomorrow at 9 CET", "tomorrow at 9 EST", "2026-11-16T09:00Z UTC"),
        *("noon utc utc", "tomorrow -5", "30m..", "tomorrow at 9,", "in a couple of hours", "in twenty", "twenty"),
    ],
)
def test_nonsense_is_refused_with_the_text_and_the_accepted_forms(text):
    with pytest.raises(WhenUnreadable) as refused:
        parse_when(text, NOW, BERLIN)
    assert repr(text) in refused.value.message
    assert "in half an hour" in refused.value.message
    assert refused.value.field == "when"


@pytest.mark.parametrize(
    "text",
    [
        "99999999999h",
        "9999999999999999999w",
        "9999-12-31T23:59:59-05:00",
        "9999-06-01T00:00Z",
        "0001-01-01T00:00+14:00",
    ],
)
def test_what_the_calendar_cannot_hold_is_refused(text):
    with pytest.raises(WhenTooFar, match="out of range"):
        parse_when(text, NOW, BERLIN)


def test_a_long_text_is_refused_and_echoed_in_part():
    assert parse_when("1m" + " " * (MAX_LENGTH - 2), NOW, None)
    with pytest.raises(WhenUnreadable) as refused:
        parse_when("1m" + " " * (MAX_LENGTH - 1), NOW, None)
    assert len(refused.value.message) < 500


WORDS = st.sampled_from(
    """
    in at on a an half hour hours m h d w next today tonight tomorrow friday mon noon midnight end of day the by eod am
    pm p.m. this morning evening after tomorrow quarter quarters three twenty five utc +05:30 europe/berlin . ½ ¼
    9 0 12 13 25 1.5 9:30 9:75 09:00:61 2026-11-16T09:00 2026-02-30T02:30Z +01:00 z and ½ - , from now one 99999
    """.split()  # noqa: SIM905
)
TEXTS = st.text(max_size=250) | st.lists(WORDS, max_size=6).map(" ".join) | st.lists(WORDS, max_size=6).map("".join)


@settings(max_examples=1_000 if IS_LONG else 200)
@given(
    TEXTS,
    st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
    st.sampled_from([None, BERLIN, "Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo", "Etc/GMT+12"]),
)
@example("0001-01-01T00:00Z", NOW, "America/New_York")
@example("9999-12-31T23:59", NOW, "Etc/GMT+12")
def test_garbage_raises_only_the_domain_error_and_nothing_is_ever_past(text, now, zone):
    try:
        when = parse_when(text, now, zone)
    except BadWhen:
        return
    assert when.at > now
    assert when.at.tzinfo is UTC
