"""How long: `30m`, `2h 15m`, `1d12h`, `1.5h`, `90 seconds`, `in half an hour`, `an hour and a half`.

A day is 24 hours and a week 168, whatever the clocks do in between. Months and years have no fixed length: refused.
"""

import re
from datetime import timedelta
from fractions import Fraction

UNITS = {
    604_800: ("weeks", "week", "wks", "wk", "w"),
    86_400: ("days", "day", "d"),
    3_600: ("hours", "hour", "hrs", "hr", "h"),
    60: ("minutes", "minute", "mins", "min", "m"),
    1: ("seconds", "second", "secs", "sec", "s"),
}
SECONDS = {spelling: seconds for seconds, spellings in UNITS.items() for spelling in spellings}
COUNTS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
DIGITS = {"a": "1", "an": "1"} | {word: str(number) for number, word in enumerate(COUNTS, start=1)}

HALF_OF = re.compile(r"\bhalf an?\b")
AND_A_HALF = re.compile(r" and a half\b")
COUNT = re.compile(rf"\b({'|'.join(DIGITS)})(?=½? [a-z]{{3}})")  # three letters: 'a m' is no minute
TERM = re.compile(rf"(\d+(?:\.\d+)?)(½?) ?({'|'.join(SECONDS)})(?![a-z])(½?)", re.ASCII)
JOINED = r"(?:,? and |, ?| )?"
DURATION = re.compile(rf"(?:in )?{TERM.pattern}(?:{JOINED}{TERM.pattern})*(?: from now)?", re.ASCII)


def read_duration(words: str) -> timedelta | None:
    """Return the length that lower-case, single-spaced words name, or None; each unit may appear once."""
    words = AND_A_HALF.sub("½", HALF_OF.sub("0½", words))
    words = COUNT.sub(lambda found: DIGITS[found[1]], words)
    if not DURATION.fullmatch(words):
        return None
    lengths: dict[int, Fraction] = {}
    for amount, half_before, unit, half_after in TERM.findall(words):
        halves = len(half_before + half_after)
        if halves > 1 or SECONDS[unit] in lengths:
            return None
        lengths[SECONDS[unit]] = Fraction(amount) + Fraction(halves, 2)
    seconds = sum(unit * amount for unit, amount in lengths.items())
    return timedelta(microseconds=int(seconds * 1_000_000))


def format_duration(length: timedelta) -> str:
    """Write a length in its two largest units: `2 h 15 min`, `10 s`."""
    seconds = max(0, round(length.total_seconds()))
    parts: list[str] = []
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        amount, seconds = divmod(seconds, unit)
        if amount:
            parts.append(f"{amount} {name}")
    return " ".join(parts[:2]) or "0 s"
