"""Parse the times that people and models write, with a strict grammar. Everything else is refused.

`FORMS` lists what is accepted; error messages, tool descriptions and `docs/reference/times.md` are made from it.

- Case, extra spaces and one dot at the end do not matter, and `at` may be left out.
- A clock is `9`, `09:00`, `09:00:30`, `9am`, `9:30 p.m.` or `noon`. Without am or pm it counts to 24; `12am` is 00:00.
  It may stand first (`9am tomorrow`). No day takes `midnight`: "friday midnight" could be either end of it.
- A morning ends at noon and an evening begins at 17:00, as does tonight; there 5 to 11 mean the evening.
- A wall clock in a spring gap means the first instant after the gap; one that comes twice in autumn means the first.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo

from wakeful.core.errors import Invalid
from wakeful.core.texts import show
from wakeful.core.types import FOREVER
from wakeful.core.zones import MAX_OFFSET, find_zone, load_zone, read_duration, resolve_wall_clock

MAX_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Form:
    """One form of a time: examples, the best first, and what they mean."""

    examples: tuple[str, ...]
    means: str


FORMS = (
    Form(("30m", "2h 15m", "1.5h", "90 seconds", "in 3 hours", "90 minutes from now"), "that long from now"),
    Form(("in twenty minutes", "in twenty-five minutes", "an hour and a half"), "the same in words, up to ninety-nine"),
    Form(("in half an hour", "½ hour", "quarter of an hour", "1½ hours"), "the same in parts"),
    Form(("in a week", "in 2 days"), "a day is 24 hours and a week 168, whatever the clocks do in between"),
    Form(("18:30", "9am", "noon", "midnight"), "the coming one, today or tomorrow; a bare `9` is refused"),
    Form(("today 18:30",), "today; if that is past, an error, never tomorrow"),
    Form(("this evening", "this evening at 8"), "today at 18:00, or at that time; an error once it is past"),
    Form(("tonight", "tonight at 8", "tonight at midnight"), "today at 20:00, or at that time; the coming midnight"),
    Form(("end of day",), "today at 18:00, when work ends"),
    Form(("tomorrow at 09:00", "tomorrow", "tomorrow morning"), "tomorrow at that time; without one at 09:00"),
    Form(("tomorrow evening", "friday evening"), "that day at 18:00"),
    Form(("day after tomorrow", "day after tomorrow at 14:30"), "in two days, at 09:00 or at that time"),
    Form(("friday 14:30", "friday"), "the coming Friday at that time, or at 09:00; today if that is still ahead"),
    Form(("this friday", "this friday at 14:30"), "the Friday of this week; on a Friday it needs a time"),
    Form(("next monday at 9", "next monday"), "the Monday of next week, never this week's; weeks begin on Monday"),
    Form(("tomorrow at 9 UTC", "noon America/New_York", "18:30 +05:45"), "in that zone, whatever else is known"),
    Form(("2026-11-16T09:00:00+01:00", "2026-11-16T09:00Z"), "that instant"),
    Form(("2026-11-16T09:00",), "that wall clock in the zone; a date alone is refused"),
)
ACCEPTED = ", ".join(form.examples[0] for form in FORMS)
MORNING, EVENING, TONIGHT = time(9), time(18), time(20)
END_OF_WORK, EVENING_BEGINS, NOON = time(18), time(17), time(12)
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

_ON_DAY = (
    r"(?P<day>today|tonight|tomorrow|(?:the )?day after tomorrow|this(?= morning| evening)"
    rf"|(?:on )?(?:(?P<which>next|this) )?(?P<weekday>{'|'.join(WEEKDAYS)}))(?: (?P<part>morning|evening))?"
)
_DIGITS = r"(?P<hour>\d\d?)(?::(?P<minute>\d\d)(?::(?P<second>\d\d))?)?(?: ?(?P<half>[ap])(?:m|\.m\.))?"
_AT_CLOCK = rf"(?:at )?(?P<clock>noon|{_DIGITS})"
DAY_THEN_CLOCK = re.compile(rf"{_ON_DAY}(?: {_AT_CLOCK})?", re.ASCII)
CLOCK_THEN_DAY = re.compile(rf"{_AT_CLOCK}(?: {_ON_DAY})?", re.ASCII)
MIDNIGHT = re.compile(r"(?:at |tonight (?:at )?)?midnight")
END_OF_DAY = re.compile(r"(?:(?:at|by) )?(?:the )?end of (?:the )?day|eod")
# Abbreviations other than UTC and GMT are used by several zones each: EST is New York's and Sydney's.
IN_ZONE = re.compile(
    r"(?P<rest>.+) (?P<zone>utc|gmt|[a-z_]+(?:/[a-z0-9_+-]+)+"
    r"|(?:(?:utc|gmt)(?=[+-]))?(?P<sign>[+-])(?P<hours>\d\d?)(?::?(?P<minutes>[0-5]\d))?)",
    re.ASCII,
)
_OFFSET = r"(?:z|[+-]\d\d(?::?[0-5]\d)?)?"  # Python itself would take +05:99
ISO = re.compile(rf"\d{{4}}-\d\d-\d\d[t ](?:[01]\d|2[0-3]):\d\d(?::\d\d(?:[.,]\d{{1,9}})?)?{_OFFSET}", re.ASCII)
ISO_BASIC = re.compile(rf"\d{{8}}t(?:[01]\d|2[0-3])\d\d(?:\d\d)?{_OFFSET}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """A future time, with the local time if the text needed a time zone."""

    at: datetime  # aware, UTC
    wall_clock: str | None = None  # such as 2026-11-16T09:00
    zone: str | None = None  # IANA name of the zone that the text itself named
    moved_by: tuple[str, ...] = ()  # why `at` is not the time that was written: clock_change


class BadWhen(Invalid):
    """A time that cannot be used."""

    code = "when_invalid"

    def __init__(self, text: str, problem: str) -> None:
        shown = text if len(text) <= 80 else f"{text[:80]}…"
        super().__init__(f"{shown!r} {problem} Accepted forms: {ACCEPTED}.", field="when")


class BadTime(Invalid):
    """The time is missing, given twice, or cannot be parsed."""

    code = "bad_time"


class WhenUnreadable(BadWhen):
    """The text has none of the accepted forms."""

    code = "when_unreadable"


class WhenPast(BadWhen):
    """The time is now or earlier."""

    code = "when_past"

    def __init__(self, text: str, at: datetime, now: datetime, zone: tzinfo | None) -> None:
        meant, present = (moment.astimezone(zone or UTC).isoformat(timespec="seconds") for moment in (at, now))
        super().__init__(text, f"is not in the future: it means {meant}, and now it is {present}.")


class WhenAmbiguous(BadWhen):
    """The text could mean either of two days."""

    code = "when_ambiguous"


class WhenTooFar(BadWhen):
    """The time is out of range."""

    code = "when_too_far"


class WhenNeedsZone(BadWhen):
    """The text is a wall-clock time, and no time zone is known."""

    code = "when_needs_zone"


def parse_when(text: str, now: datetime, zone: str | tzinfo | None) -> When:
    """Return the time that the text means, always later than `now`; the zone is an IANA name or a tzinfo."""
    place = load_zone(zone) if isinstance(zone, str) else zone
    if len(text) > MAX_LENGTH:
        raise WhenUnreadable(text, f"is longer than {MAX_LENGTH} characters.")
    words = " ".join(text.lower().split())
    if words.endswith(".") and not words.endswith(".m."):
        words = words[:-1]
    try:
        return _read(text, words, now.astimezone(UTC), place)
    except OverflowError:
        raise WhenTooFar(text, "is out of range.") from None


def read_instant(text: str, field: str, instead: str) -> datetime:
    """Parse an ISO 8601 time with its offset, past or future. Refuse anything else."""
    words = text.strip().lower()
    problem = "is not a time that can be read"
    if len(words) <= MAX_LENGTH and (ISO.fullmatch(words) or ISO_BASIC.fullmatch(words)):
        moment = _read_iso(words)
        if moment is None:
            problem = "is not a valid date, time or offset"
        elif moment.tzinfo is None:
            problem = "has no time zone"
        else:
            try:
                return moment.astimezone(UTC)
            except OverflowError:
                problem = "is out of range"
    raise BadTime(
        f"`{field}` is {show(text)}, which {problem}. Use ISO 8601 with its offset or Z, such as "
        f"'2026-11-16T09:00:00+01:00'. For a time from now use `{instead}`.",
        field=field,
    )


def _read(text: str, words: str, now: datetime, zone: tzinfo | None) -> When:
    length = read_duration(words)
    if length is not None:
        return _check_ahead(text, When(at=now + length), now, zone)
    moment = _read_iso(words)
    if moment is not None and moment.tzinfo is not None:
        return _check_ahead(text, When(at=moment.astimezone(UTC)), now, zone)
    name = None
    in_zone = None if moment else IN_ZONE.fullmatch(words)
    if in_zone is not None:
        words, (zone, name) = in_zone["rest"], _zone_in(text, in_zone)
        moment = _read_iso(words)
    today = now.astimezone(zone or UTC).date()
    choices = (moment,) if moment is not None else _read_words(text, words, today)
    if not choices or (moment is not None and moment.tzinfo is not None):
        raise WhenUnreadable(text, "is not a time that can be read.")
    if zone is None:
        raise WhenNeedsZone(
            text,
            "is a wall-clock time, and no time zone is known, neither of the agent nor of its user: name one, such as "
            "'Europe/Berlin'.",
        )
    return _check_ahead(text, _first_ahead(choices, now, zone, name), now, zone)


def _check_ahead(text: str, when: When, now: datetime, zone: tzinfo | None) -> When:
    if when.at <= now:
        raise WhenPast(text, when.at, now, zone)
    if when.at >= FOREVER:
        raise WhenTooFar(text, "is out of range.")
    return when


def _zone_in(text: str, found: re.Match[str]) -> tuple[tzinfo, str | None]:
    """Return the zone at the end of a text and, unless it is an offset, its IANA name."""
    said = found["zone"]
    if found["sign"] is None:
        name = "UTC" if said in ("utc", "gmt") else find_zone(said)
        if name is not None:
            return load_zone(name), name
    # A bare '-5' could be anything, so an offset alone needs all its digits.
    elif said[0] in "ug" or (len(found["hours"]) == 2 and found["minutes"]):
        offset = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"] or 0))
        if offset <= MAX_OFFSET:
            return timezone(-offset if found["sign"] == "-" else offset), None
    raise WhenUnreadable(text, f"ends in {said!r}, and no such time zone is known.")


def _first_ahead(choices: tuple[datetime, ...], now: datetime, zone: tzinfo, name: str | None) -> When:
    """Return the first of the local times that is in the future, or else the last one."""
    moments = [(local, resolve_wall_clock(local, zone)) for local in choices]
    local, at = next((moment for moment in moments if moment[1] > now), moments[-1])
    timespec = "auto" if local.second or local.microsecond else "minutes"
    is_in_gap = at.astimezone(zone).replace(tzinfo=None, fold=0) != local
    return When(
        at=at,
        wall_clock=local.isoformat(timespec=timespec),
        zone=name,
        moved_by=("clock_change",) if is_in_gap else (),
    )


def _read_iso(words: str) -> datetime | None:
    if not (ISO.fullmatch(words) or ISO_BASIC.fullmatch(words)):
        return None
    try:
        moment = datetime.fromisoformat(words.upper())
    except ValueError:
        return None
    offset = moment.utcoffset()
    return moment if offset is None or abs(offset) <= MAX_OFFSET else None


def _read_words(text: str, words: str, today: date) -> tuple[datetime, ...]:
    """Return the local times that the words can mean, soonest first; none if they are not a time."""
    if MIDNIGHT.fullmatch(words):
        return (datetime.combine(today + DAY, time()),)
    if END_OF_DAY.fullmatch(words):
        return (datetime.combine(today, END_OF_WORK),)
    match = DAY_THEN_CLOCK.fullmatch(words) or CLOCK_THEN_DAY.fullmatch(words)
    clock = _clock(match) if match else None
    if match is None or clock is None:
        return ()
    days = _days(match, today)
    if match["which"] == "this" and days == (today,) and not (match["clock"] or match["part"]):
        raise WhenAmbiguous(
            text, f"could mean today or next week, because today is {match['weekday']}: say a time, or 'next'."
        )
    return tuple(datetime.combine(day, clock) for day in days)


def _days(match: re.Match[str], today: date) -> tuple[date, ...]:
    day, which, weekday = match.group("day", "which", "weekday")
    if weekday:
        monday = today - today.weekday() * DAY
        this_week = monday + WEEKDAYS[weekday] * DAY
        next_week = this_week + 7 * DAY
        return {"this": (this_week,), "next": (next_week,)}.get(which, (this_week, next_week))
    if day is None:
        return (today, today + DAY)
    if day.endswith("day after tomorrow"):
        return (today + 2 * DAY,)
    return (today + DAY,) if day == "tomorrow" else (today,)


def _clock(match: re.Match[str]) -> time | None:
    """Return the time of day in the text, or the default of that day; None if it makes no sense."""
    day, part, said = match.group("day", "part", "clock")
    if day == "tonight" and part:
        return None
    if said is None:
        usual = {"today": None, "tonight": TONIGHT}.get(day, MORNING)
        return {"morning": MORNING, "evening": EVENING}.get(part, usual)
    clock = NOON if said == "noon" else _digits(match)
    if clock is None or (part == "morning" and clock >= NOON):
        return None
    return None if _is_evening(match) and clock < EVENING_BEGINS else clock


def _is_evening(match: re.Match[str]) -> bool:
    return match["day"] == "tonight" or match["part"] == "evening"


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
    elif _is_evening(match) and 0 < hour < 12:
        hour += 12
    try:
        return time(hour, int(minute or 0), int(second or 0))
    except ValueError:
        return None
