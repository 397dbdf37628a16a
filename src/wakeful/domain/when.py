"""When: a strict grammar for the times that people and models write; what it does not know it refuses.

Case and extra spaces do not matter, and `at` may be left out.

| form | meaning |
|---|---|
| `30m`, `2h 15m`, `in half an hour`, `90 minutes from now` | that long from now, see `duration` |
| `2026-11-16T09:00+01:00`, `…Z` | that instant |
| `2026-11-16T09:00` | that wall clock in the zone; a date alone is refused |
| `18:30`, `9am`, `noon`, `midnight` | the coming one, today or tomorrow; a bare `9` is refused |
| `today at 18:30` | today; if that is past, an error, never tomorrow |
| `tonight`, `tonight at 8` | today at 20:00, or at that time from 17:00 on, where 5 to 11 mean the evening |
| `tonight at midnight` | the coming midnight |
| `end of day` | today at 18:00, when work ends |
| `tomorrow`, `tomorrow at 9` | tomorrow at 09:00, or at that time |
| `friday`, `friday at 14:30` | the coming Friday at 09:00, or at that time; today if that is still ahead |
| `next monday at 9` | the Monday of next week, never this week's; weeks begin on Monday |

A clock is `9`, `09:00`, `09:00:30`, `9am`, `9:30 p.m.` or `noon`. Without am or pm it counts to 24; `12am` is 00:00.
It may stand first (`9am tomorrow`). No other day takes `midnight`: "friday midnight" could be either end of it.
A wall clock in a spring gap means the first instant after the gap; one that comes twice in autumn means the first.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from wakeful.domain.duration import read_duration
from wakeful.domain.errors import Invalid
from wakeful.domain.texts import show
from wakeful.domain.types import FOREVER
from wakeful.domain.zones import MAX_OFFSET, load_zone, resolve_wall_clock

LONGEST = 200
FORMS = (
    "30m, 2h 15m, 1.5h, 90 seconds, in 3 hours, in half an hour, in a week, today 18:30, tonight, tonight at 8, "
    "tomorrow at 09:00, friday 14:30, next monday at 9, noon, midnight, end of day, 2026-11-16T09:00:00+01:00"
)
MORNING, EVENING, END_OF_WORK, TONIGHT_BEGINS = time(9), time(20), time(18), time(17)
DAY = timedelta(days=1)
WEEK = (
    "monday mon",
    "tuesday tues tue",
    "wednesday wed",
    "thursday thurs thur thu",
    "friday fri",
    "saturday sat",
    "sunday sun",
)
WEEKDAYS = {name: number for number, names in enumerate(WEEK) for name in names.split()}

_ON_DAY = rf"(?P<day>today|tonight|tomorrow|(?:on )?(?P<next>next )?(?P<weekday>{'|'.join(WEEKDAYS)}))"
_DIGITS = r"(?P<hour>\d\d?)(?::(?P<minute>\d\d)(?::(?P<second>\d\d))?)?(?: ?(?P<half>[ap])(?:m|\.m\.))?"
_AT_CLOCK = rf"(?:at )?(?P<clock>noon|{_DIGITS})"
DAY_THEN_CLOCK = re.compile(rf"{_ON_DAY}(?: {_AT_CLOCK})?", re.ASCII)
CLOCK_THEN_DAY = re.compile(rf"{_AT_CLOCK}(?: {_ON_DAY})?", re.ASCII)
MIDNIGHT = re.compile(r"(?:at |tonight (?:at )?)?midnight")
END_OF_DAY = re.compile(r"(?:(?:at|by) )?(?:the )?end of (?:the )?day|eod")
_OFFSET = r"(?:z|[+-]\d\d(?::?[0-5]\d)?)?"  # Python itself would take +05:99
ISO = re.compile(rf"\d{{4}}-\d\d-\d\d[t ](?:[01]\d|2[0-3]):\d\d(?::\d\d(?:[.,]\d{{1,9}})?)?{_OFFSET}", re.ASCII)
ISO_BASIC = re.compile(rf"\d{{8}}t(?:[01]\d|2[0-3])\d\d(?:\d\d)?{_OFFSET}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """A moment ahead, with the local words' meaning if a zone was needed to find it."""

    at: datetime  # aware, UTC
    wall_clock: str | None = None  # such as 2026-11-16T09:00


class BadWhen(Invalid):
    """A time that cannot be used."""

    code = "when_invalid"

    def __init__(self, text: str, problem: str) -> None:
        shown = text if len(text) <= 80 else f"{text[:80]}…"
        super().__init__(f"{shown!r} {problem} Accepted forms: {FORMS}.", field="when")


class BadTime(Invalid):
    """The time is missing, said twice, or not one that can be read."""

    code = "bad_time"


class WhenUnreadable(BadWhen):
    """The text is none of the forms."""

    code = "when_unreadable"


class WhenPast(BadWhen):
    """The time is now or earlier."""

    code = "when_past"

    def __init__(self, text: str, at: datetime, now: datetime, zone: tzinfo | None) -> None:
        meant, present = (moment.astimezone(zone or UTC).isoformat(timespec="seconds") for moment in (at, now))
        super().__init__(text, f"is not in the future: it means {meant}, and now it is {present}.")


class WhenTooFar(BadWhen):
    """The time is beyond what a calendar here can hold."""

    code = "when_too_far"


class WhenNeedsZone(BadWhen):
    """The text is a wall clock, and nobody said where that clock hangs."""

    code = "when_needs_zone"


def parse_when(text: str, now: datetime, zone: str | tzinfo | None) -> When:
    """Return the moment that the text means, always later than `now`; the zone is an IANA name or a tzinfo."""
    place = load_zone(zone) if isinstance(zone, str) else zone
    if len(text) > LONGEST:
        raise WhenUnreadable(text, f"is longer than {LONGEST} characters.")
    try:
        when = _read(text, " ".join(text.lower().split()), now.astimezone(UTC), place)
        if when.at <= now:
            raise WhenPast(text, when.at, now, place)
    except OverflowError:
        raise WhenTooFar(text, "is out of range.") from None
    if when.at >= FOREVER:
        raise WhenTooFar(text, "is out of range.")
    return when


def read_instant(text: str, field: str, instead: str) -> datetime:
    """Read an instant that is written whole, past or not: ISO 8601 with its offset. Refuse anything else."""
    words = text.strip().lower()
    problem = "is not a time that can be read"
    if len(words) <= LONGEST and (ISO.fullmatch(words) or ISO_BASIC.fullmatch(words)):
        moment = _read_iso(words)
        if moment is None:
            problem = "is in no calendar, or in a zone that is nowhere"
        elif moment.tzinfo is None:
            problem = "has no time zone"
        else:
            try:
                return moment.astimezone(UTC)
            except OverflowError:
                problem = "is out of range"
    raise BadTime(
        f"`{field}` is {show(text)}, which {problem}. Accepted is ISO 8601 with its offset or Z, such as "
        f"'2026-11-16T09:00:00+01:00'. For a time from now use `{instead}`.",
        field=field,
    )


def _read(text: str, words: str, now: datetime, zone: tzinfo | None) -> When:
    length = read_duration(words)
    if length is not None:
        return When(at=now + length)
    moment = _read_iso(words)
    if moment is not None and moment.tzinfo is not None:
        return When(at=moment.astimezone(UTC))
    today = now.astimezone(zone or UTC).date()
    choices = (moment,) if moment is not None else _read_words(words, today)
    if not choices:
        raise WhenUnreadable(text, "is not a time that can be read.")
    if zone is None:
        raise WhenNeedsZone(text, "is a wall-clock time, and no time zone is known: give one, such as 'Europe/Berlin'.")
    return _first_ahead(choices, now, zone)


def _first_ahead(choices: tuple[datetime, ...], now: datetime, zone: tzinfo) -> When:
    """Return the first of the local times that is still ahead, or else the last one."""
    moments = [(local, resolve_wall_clock(local, zone)) for local in choices]
    local, at = next((moment for moment in moments if moment[1] > now), moments[-1])
    timespec = "auto" if local.second or local.microsecond else "minutes"
    return When(at=at, wall_clock=local.isoformat(timespec=timespec))


def _read_iso(words: str) -> datetime | None:
    if not (ISO.fullmatch(words) or ISO_BASIC.fullmatch(words)):
        return None
    try:
        moment = datetime.fromisoformat(words.upper())
    except ValueError:
        return None
    offset = moment.utcoffset()
    return moment if offset is None or abs(offset) <= MAX_OFFSET else None


def _read_words(words: str, today: date) -> tuple[datetime, ...]:
    """Return the local times that the words can mean, soonest first; none if they mean nothing."""
    if MIDNIGHT.fullmatch(words):
        return (datetime.combine(today + DAY, time()),)
    if END_OF_DAY.fullmatch(words):
        return (datetime.combine(today, END_OF_WORK),)
    match = DAY_THEN_CLOCK.fullmatch(words) or CLOCK_THEN_DAY.fullmatch(words)
    clock = _clock(match) if match else None
    if match is None or clock is None:
        return ()
    return tuple(datetime.combine(day, clock) for day in _days(match, today))


def _days(match: re.Match[str], today: date) -> tuple[date, ...]:
    if match["weekday"]:
        monday = today - today.weekday() * DAY
        this_week = monday + WEEKDAYS[match["weekday"]] * DAY
        next_week = this_week + 7 * DAY
        return (next_week,) if match["next"] else (this_week, next_week)
    if match["day"] is None:
        return (today, today + DAY)
    return (today + DAY,) if match["day"] == "tomorrow" else (today,)


def _clock(match: re.Match[str]) -> time | None:
    """Return the time of day that was said, or the usual one for that day, or None for one that makes no sense."""
    day, said = match.group("day", "clock")
    if said is None:
        return {"today": None, "tonight": EVENING}.get(day, MORNING)
    clock = time(12) if said == "noon" else _digits(match)
    return None if clock and day == "tonight" and clock < TONIGHT_BEGINS else clock


def _digits(match: re.Match[str]) -> time | None:
    day, minute, second, half = match.group("day", "minute", "second", "half")
    # A bare `9` could be morning or evening, or `9m` with the unit forgotten.
    if day is None and minute is None and half is None:
        return None
    hour = int(match["hour"])
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "p" else 0)
    elif day == "tonight" and 0 < hour < 12:
        hour += 12
    try:
        return time(hour, int(minute or 0), int(second or 0))
    except ValueError:
        return None
