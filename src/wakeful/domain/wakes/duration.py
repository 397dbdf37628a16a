"""Parse and format durations: `30m`, `1.5h`, `90 seconds`, `in twenty-five minutes`, `in half an hour`, `1½ hours`.

Numbers may be words up to ninety-nine; a half, a quarter and three quarters may stand before or after a unit.

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
ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TEENS = ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
NUMBERS = {
    "a": 1,
    "an": 1,
    **{word: number for number, word in enumerate((*ONES, *TEENS), start=1)},
    **{word: 10 * number for number, word in enumerate(TENS, start=2)},
    **{f"{ten}-{one}": 10 * tens + ones for tens, ten in enumerate(TENS, 2) for ones, one in enumerate(ONES, 1)},
}
PARTS = {"½": Fraction(1, 2), "¼": Fraction(1, 4), "¾": Fraction(3, 4)}

_PART = f"[{''.join(PARTS)}]"
PART_OF = {
    re.compile(r"\bhalf an?\b"): "½",
    re.compile(r"\b(?:a )?quarter of an?\b"): "¼",
    re.compile(r"\bthree quarters of an?\b"): "¾",
    # `&` keeps `and a half` apart from a part that begins the next term, as in `1h ½m`.
    re.compile(r" and a half\b"): "&½",
    re.compile(r" and a quarter\b"): "&¼",
    re.compile(r" and three quarters\b"): "&¾",
}
COMPOUND = re.compile(rf"\b({'|'.join(TENS)}) (?=(?:{'|'.join(ONES)})\b)")
# The longest first. Three letters have to follow: 'a m' is not a minute.
COUNT = re.compile(
    rf"(?<![a-z-])({'|'.join(sorted(NUMBERS, key=len, reverse=True))})(?=(?:&{_PART})? [a-z]{{3}})", re.ASCII
)
TERM = re.compile(
    rf"(?:(\d+(?:\.\d+)?)(?:[& ]?({_PART}))?|({_PART})) ?({'|'.join(SECONDS)})(?![a-z½¼¾])(?:&({_PART}))?", re.ASCII
)
JOINED = r"(?:,? and |, ?| )?"
DURATION = re.compile(rf"(?:in )?{TERM.pattern}(?:{JOINED}{TERM.pattern})*(?: from now)?", re.ASCII)


def read_duration(words: str) -> timedelta | None:
    """Return the duration that a lower-case, single-spaced text means, or None; each unit may appear once."""
    if "&" in words:
        return None
    for form, part in PART_OF.items():
        words = form.sub(part, words)
    words = COUNT.sub(lambda found: str(NUMBERS[found[1]]), COMPOUND.sub(r"\1-", words))
    if not DURATION.fullmatch(words):
        return None
    lengths: dict[int, Fraction] = {}
    for amount, *parts_before, unit, part_after in TERM.findall(words):
        parts = [part for part in (*parts_before, part_after) if part]
        if len(parts) > 1 or (parts and "." in amount) or SECONDS[unit] in lengths:
            return None
        lengths[SECONDS[unit]] = Fraction(amount or 0) + sum(PARTS[part] for part in parts)
    seconds = sum(unit * amount for unit, amount in lengths.items())
    return timedelta(microseconds=int(seconds * 1_000_000))


def format_duration(length: timedelta) -> str:
    """Return a duration rounded to its two largest units: `2 h 15 min`, `10 s`."""
    seconds = max(0, round(length.total_seconds()))
    smallest = 3_600 if seconds >= 86_400 else 60 if seconds >= 3_600 else 1
    seconds = (seconds + smallest // 2) // smallest * smallest
    parts: list[str] = []
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        amount, seconds = divmod(seconds, unit)
        if amount:
            parts.append(f"{amount} {name}")
    return " ".join(parts) or "0 s"
