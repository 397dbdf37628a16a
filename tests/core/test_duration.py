from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.zones import format_duration, read_duration

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@pytest.mark.parametrize(
    ("words", "length"),
    [
        ("30m", 30 * MINUTE),
        ("2h 15m", 2 * HOUR + 15 * MINUTE),
        ("2h15m", 2 * HOUR + 15 * MINUTE),
        ("15m 2h", 2 * HOUR + 15 * MINUTE),
        ("1d12h", 36 * HOUR),
        ("1.5h", 90 * MINUTE),
        ("0.1s", timedelta(milliseconds=100)),
        ("90 seconds", 90 * MINUTE / 60),
        ("1w", timedelta(days=7)),
        ("2 hrs, 5 mins", 2 * HOUR + 5 * MINUTE),
        ("2 hours and 15 minutes", 2 * HOUR + 15 * MINUTE),
        ("1 day, 2 hours, and 3 seconds", timedelta(days=1, hours=2, seconds=3)),
        ("in 3 hours", 3 * HOUR),
        ("in half an hour", 30 * MINUTE),
        ("half a day", 12 * HOUR),
        ("in a week", timedelta(days=7)),
        ("an hour", HOUR),
        ("a minute", MINUTE),
        ("three hours", 3 * HOUR),
        ("in an hour and a half", 90 * MINUTE),
        ("2 hours and a half", 150 * MINUTE),
        ("one and a half hours", 90 * MINUTE),
        ("2 and a half days", timedelta(days=2.5)),
        ("2½ hours", 150 * MINUTE),
        ("an hour and 20 minutes", 80 * MINUTE),
        ("90 minutes from now", 90 * MINUTE),
        ("0m", timedelta(0)),
        ("twenty minutes", 20 * MINUTE),
        ("in twenty-five minutes", 25 * MINUTE),
        ("ninety nine seconds", timedelta(seconds=99)),
        ("fifteen minutes", 15 * MINUTE),
        ("twenty-five and a half minutes", timedelta(minutes=25.5)),
        ("two hours and twenty minutes", 2 * HOUR + 20 * MINUTE),
        ("quarter of an hour", 15 * MINUTE),
        ("in a quarter of an hour", 15 * MINUTE),
        ("three quarters of an hour", 45 * MINUTE),
        ("an hour and a quarter", 75 * MINUTE),
        ("two and three quarters hours", 165 * MINUTE),
        ("½ hour", 30 * MINUTE),
        ("½h", 30 * MINUTE),
        ("1½ hours", 90 * MINUTE),
        ("1 ½ hours", 90 * MINUTE),
        ("¼ hour", 15 * MINUTE),
        ("¾ hours", 45 * MINUTE),
        ("1h ½m", HOUR + MINUTE / 2),
    ],
)
def test_a_length_is_read(words, length):
    assert read_duration(words) == length


@pytest.mark.parametrize(
    "words",
    [
        *(
            "",
            "in",
            "m",
            "30",
            "30 x",
            "in a month",
            "a year",
            "am",
            "a m",
            "half",
            "half hour",
            "-5m",
            "in -5 minutes",
        ),
        *(
            "1,5h",
            ".5h",
            "1.h",
            "1e3s",
            "1h 1h",
            "1h 60 minutes 2 hours",
            "2h15",
            "2h and",
            "2h, , 3m",
            "1h and and 2m",
        ),
        *("half an hour and a half", "2½½ hours", "an hour and a half hour", "an an hour", "h1", "٣m", "1hm", "30mm"),
        *("twenty", "twenty-ten minutes", "five twenty minutes", "one one minutes", "twenty-five-five minutes", "½"),
        *(
            "1h½m",
            "1h½",
            "1.5½ hours",
            "½½ hours",
            "quarter",
            "a quarter",
            "quarter of an hour and a half",
            "1&½ hours",
        ),
        *("quarter past nine", "a couple of hours", "hundred minutes", "twenty-m", "five m"),
        *("30 m i n", "five", "from now", "5m ago", "a few minutes", "1_0m", "+5m", "5m tomorrow", "in in 5m"),
    ],
)
def test_anything_else_is_no_length(words):
    assert read_duration(words) is None


def test_a_length_beyond_the_calendar_overflows():
    with pytest.raises(OverflowError):
        read_duration("9" * 150 + "w")


@given(st.integers(0, 10**6), st.sampled_from(["s", "m", "h", "d", "w"]))
def test_digits_and_a_letter_are_that_many_units(number, letter):
    unit = {"s": timedelta(seconds=1), "m": MINUTE, "h": HOUR, "d": 24 * HOUR, "w": 168 * HOUR}[letter]
    assert read_duration(f"{number}{letter}") == number * unit


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.4, "0 s"),
        (10, "10 s"),
        (60, "1 min"),
        (8_100, "2 h 15 min"),
        (90_061, "1 d 1 h"),
        (-5, "0 s"),
        (172_790, "2 d"),
        (3_599, "59 min 59 s"),
        (7_170, "2 h"),
        (86_399, "1 d"),
        (341_999, "3 d 23 h"),
    ],
)
def test_a_length_is_rounded_to_its_two_largest_units(seconds, text):
    assert format_duration(timedelta(seconds=seconds)) == text
