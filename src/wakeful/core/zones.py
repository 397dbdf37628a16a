"""Time zones by name, wall-clock times as instants, and durations as texts.

A duration is `30m`, `1.5h`, `90 seconds`, `in twenty-five minutes`, `in half an hour` or `1½ hours`. Numbers may be
words up to ninety-nine; a half, a quarter and three quarters may stand before or after a unit. A day is 24 hours and a
week 168, whatever the clocks do in between. Months and years have no fixed length: refused.
"""

import difflib
import re
from bisect import bisect_left
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from fractions import Fraction
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from wakeful.core.errors import Invalid

_UTC = frozenset(
    f"{prefix}{name}" for prefix in ("", "Etc/") for name in ("UTC", "UCT", "GMT", "Zulu", "Universal", "Greenwich")
)
MAX_OFFSET = timedelta(hours=14)  # Kiritimati has the largest offset
OFFSET = re.compile(r"([+-])(\d\d):([0-5]\d)", re.ASCII)


class UnknownZone(Invalid):
    """The name is not an IANA time zone."""

    code = "unknown_zone"

    def __init__(self, name: str) -> None:
        nearest = _nearest(name)
        advice = f"Did you mean {nearest!r}?" if nearest else "Use an IANA name such as 'Europe/Berlin' or 'UTC'."
        super().__init__(f"{name[:80]!r} is not a known time zone. {advice}", field="timezone", hint=nearest)


class BadOffset(Invalid):
    """The text is not a UTC offset of any time zone."""

    code = "bad_offset"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text[:80]!r} is not a UTC offset. Use '+HH:MM' or '-HH:MM', at most 14:00 either way.",
            field="timezone_offset",
        )


_loaded: dict[str, ZoneInfo] = {}
Offsets = tuple[tuple[datetime, timedelta], ...]  # the UTC offset of a zone from each of these instants on


def load_zone(name: str) -> ZoneInfo:
    """Return the IANA zone of that exact name."""
    if name in _loaded:
        return _loaded[name]
    # ZoneInfo alone also loads 'right/...' (leap seconds) and, on some file systems, names in the wrong case.
    if name not in _zone_names():
        raise UnknownZone(name)
    return _loaded.setdefault(name, ZoneInfo(name))


def loaded_zones() -> frozenset[str]:
    """Return the zones that this process has used; no wake is planned by another one."""
    return frozenset(_loaded)


def reload() -> None:
    """Forget the zones that were loaded, so that the next use reads them from the data as it is now."""
    for cached in (_zone_names, _by_lower_case):
        cached.cache_clear()
    _loaded.clear()
    ZoneInfo.clear_cache()


def find_zone(name: str) -> str | None:
    """Return the IANA name that equals this one, ignoring case, if there is one."""
    return _by_lower_case().get(name.lower())


def is_same_zone(one: str, other: str) -> bool:
    """Return whether two names mean the same zone; of aliases only those of UTC are known."""
    return one == other or {one, other} <= _UTC


def offset_zone(text: str) -> tzinfo:
    """Return the fixed zone of an offset such as '+02:00'."""
    match = OFFSET.fullmatch(text)
    if match is None:
        raise BadOffset(text)
    sign, hours, minutes = match.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    if offset > MAX_OFFSET:
        raise BadOffset(text)
    return timezone(-offset if sign == "-" else offset)


def write_time(at: datetime, zone: str | None) -> str:
    """Return a time for people, in their zone, with its name; in UTC if theirs is not known."""
    name = zone or "UTC"
    return f"{at.astimezone(load_zone(name)):%Y-%m-%d %H:%M:%S} ({name})"


def resolve_wall_clock(local: datetime, zone: tzinfo) -> datetime:
    """Return the UTC instant at which clocks in the zone show `local`, a naive time.

    A time in a spring gap means the first instant after the gap; one that comes twice in autumn means the first.
    """
    at = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if at.astimezone(zone).replace(tzinfo=None, fold=0) == local:
        return at
    # In a gap, fold=0 uses the offset from before the change and gives a time after it; fold=1 one before it.
    ahead = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    return clock_change(zone, ahead, at) or at


def clock_change(zone: tzinfo, after: datetime, until: datetime) -> datetime | None:
    """Return the instant in (after, until] at which the zone's offset changes, if its two ends differ."""
    before = offset_at(zone, after)
    if offset_at(zone, until) == before:
        return None
    start = after.replace(microsecond=0)
    seconds = range(int((until - start).total_seconds()) + 1)
    return start + timedelta(
        seconds=bisect_left(seconds, True, key=lambda s: offset_at(zone, start + timedelta(seconds=s)) != before)
    )


def offset_at(zone: tzinfo, at: datetime) -> timedelta:
    """Return how far the zone's clocks are ahead of UTC at an instant."""
    return at.astimezone(zone).utcoffset() or timedelta(0)


@cache
def _zone_names() -> frozenset[str]:
    # Neither is a place: one is this machine's setting, the other means that there is none.
    return frozenset(available_timezones() - {"localtime", "Factory"})


@cache
def _by_lower_case() -> dict[str, str]:
    return {name.lower(): name for name in _zone_names()}


def _nearest(name: str) -> str | None:
    """Return the known zone with the most similar name; the city alone is enough."""
    spellings = {known.rpartition("/")[2].lower(): known for known in sorted(_zone_names(), reverse=True)}
    spellings |= {known.lower(): known for known in _zone_names()}
    wanted = name[:80].strip().lower().replace(" ", "_")
    matches = difflib.get_close_matches(wanted, spellings, n=1, cutoff=0.75)
    return spellings[matches[0]] if matches else None


# Durations.


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
