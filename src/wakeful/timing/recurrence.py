"""The planned times of a recurring wake: an interval from an anchor, or a cron expression in an IANA zone.

An interval counts elapsed time; clock changes do not affect it. A cron expression has five fields (`L` and `#` work
too) and follows the wall clock:

- If its hour field matches every hour (`0 * * * *`, `*/15 * * * *`), it fires whenever clocks show a matching minute:
  in a repeated hour twice, in a skipped hour not at all, so that it is even in elapsed time.
- Any other (`30 2 * * *`, `0 */2 * * *`, `*/15 2 * * *`) names wall-clock times, and each fires once: all times in a
  spring gap at the first instant after it, a time that comes twice in autumn the first time.

Debian's cron decides by a leading `*` in the minute or hour field instead, and so drops `*/15 2 * * *` in spring and
fires `0 */2 * * *` twice in autumn.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from itertools import islice
from typing import Self
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from wakeful.core.errors import Invalid
from wakeful.core.types import FOREVER, Wake
from wakeful.core.values import value
from wakeful.core.zones import clock_change, load_zone, offset_at, resolve_wall_clock

MICROSECOND, SECOND, MINUTE = timedelta(microseconds=1), timedelta(seconds=1), timedelta(minutes=1)
DAY = timedelta(days=1)
ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)  # a rule without a match in 50 years never has one


class BadCron(Invalid):
    """The cron expression cannot be used."""

    code = "bad_cron"

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(
            f"{text[:80]!r} is not a usable cron expression: {problem}. "
            "Use five fields, minute hour day month weekday, such as '0 9 * * 1-5'.",
            field="cron",
        )


class CronNeedsZone(Invalid):
    """A cron expression follows the wall clock, and no zone is known."""

    code = "cron_needs_zone"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"The cron rule {text[:80]!r} follows the wall clock, and no time zone is known, neither of the agent nor "
            "of its user: give `timezone`, such as 'Europe/Berlin'.",
            field="timezone",
        )


class RecurrenceUnclear(Invalid):
    """Neither an interval nor a cron expression is given, or both are."""

    code = "recurrence_unclear"
    field = "interval_seconds"
    text = "A recurring wake needs either a positive interval or a cron expression."


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The number of planned times from the first one up to some moment, and the one after it."""

    count: int
    next: datetime  # the first one after that moment; FOREVER if there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The planned times of a recurring wake."""

    every: timedelta | None
    cron: str | None
    timezone: str | None  # only a cron expression needs it

    def __post_init__(self) -> None:
        if (self.every is None) == (self.cron is None) or (self.every is not None and self.every <= timedelta(0)):
            raise RecurrenceUnclear

    @classmethod
    def of(cls, wake: Wake) -> Self:
        """Return the grid of a recurring wake."""
        return cls(every=wake.every, cron=wake.cron, timezone=wake.timezone)

    @property
    def is_even(self) -> bool:
        """Return whether it is even in elapsed time, whatever the clocks do."""
        return self.cron is None or _admits_every_hour(self.cron)

    def next_after(self, anchor: datetime, after: datetime) -> datetime:
        """Return the first planned instant strictly after `after`, not before the anchor; FOREVER if there is none."""
        return anchor if after < anchor else next(self.following(anchor, after), FOREVER)

    def span(self, first: datetime, until: datetime) -> Span:
        """Count the planned times from `first`, itself one, up to and including `until`, by arithmetic.

        Counted one by one, a month of a rule for every minute would take half a second.
        """
        if first > until:
            return Span(count=0, next=first)
        later = _count_cron(*self._rule(), first, until) if self.every is None else (until - first) // self.every
        return Span(count=later + 1, next=self.next_after(first, after=until))

    def times_from(self, first: datetime, count: int) -> list[datetime]:
        """Return the first planned times, starting with `first`; fewer if the calendar ends."""
        return [first, *islice(self.following(first, first), count - 1)] if count > 0 else []

    def following(self, anchor: datetime, after: datetime) -> Iterator[datetime]:
        """Yield the planned times after `after`, until the calendar ends."""
        with suppress(OverflowError):
            if self.every is not None:
                at = anchor + ((after - anchor) // self.every + 1) * self.every
                while True:
                    yield at
                    at += self.every
            else:
                cron, zone = self._rule()
                plan = _by_the_clock if _admits_every_hour(cron) else _each_time_once
                yield from plan(cron, zone, after)

    def _rule(self) -> tuple[str, ZoneInfo]:
        assert self.cron is not None
        if self.timezone is None:
            raise CronNeedsZone(self.cron)
        return self.cron, load_zone(self.timezone)


def check_cron(text: str) -> None:
    """Refuse a cron expression that cannot be read or never fires."""
    if len(text) > 200:
        raise BadCron(text, "it is longer than 200 characters")
    if len(text.split()) != 5:
        raise BadCron(text, f"it has {len(text.split())} fields")
    try:
        plan = CronSim(text, ANY_DAY)
    except CronSimError as error:
        raise BadCron(text, str(error).lower()) from None
    if next(plan, None) is None:
        raise BadCron(text, "it never fires")


@lru_cache(maxsize=1024)
def _parse(cron: str) -> CronSim:
    return CronSim(cron, ANY_DAY)


def _admits_every_hour(cron: str) -> bool:
    return len(_parse(cron).hours) == 24


def _local_matches(cron: str, after: datetime) -> CronSim:
    """Return an iterator over the naive times after a naive time. It is a copy, because parsing takes longer."""
    matches = copy(_parse(cron))
    matches.dt = after.replace(microsecond=0)
    return matches


def _each_time_once(cron: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    last = after
    for local in _local_matches(cron, after.astimezone(zone).replace(tzinfo=None)):
        at = resolve_wall_clock(local, zone)
        # False after a gap, where several times coincide, and in the second pass of a repeated hour.
        if at > last:
            yield at
            last = at


def _by_the_clock(cron: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Yield times from clock change to clock change: between two of them the offset is fixed."""
    seen, offset = after, offset_at(zone, after)
    begin = seen
    while True:
        for local in _local_matches(cron, (begin + offset).replace(tzinfo=None)):
            at = (local - offset).replace(tzinfo=UTC)
            near = min(at, seen + DAY)
            change = clock_change(zone, seen, near)
            if change is not None:
                seen, offset = change, offset_at(zone, change)
                begin = seen - SECOND  # the change itself may match
                break
            if near < at:  # the clocks may change before it: start again one day before it
                seen = begin = at - DAY
                offset = offset_at(zone, seen)
                break
            yield at
            seen = at
        else:
            return


# ── Counting ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _count_cron(cron: str, zone: ZoneInfo, after: datetime, until: datetime) -> int:
    """Count the planned times in (after, until]: between two clock changes the offset is fixed."""
    is_by_the_clock = _admits_every_hour(cron)
    offset = offset_at(zone, after)
    begin = _local(after, offset) + MICROSECOND
    if not is_by_the_clock:
        begin = max(begin, _end_of_first_pass(zone, after, offset))
    count = 0
    for change in _clock_changes(zone, after, until):
        end, offset = _local(change, offset), offset_at(zone, change)
        count += _count_local(cron, begin, end)
        begin = _local(change, offset)
        if is_by_the_clock:
            continue
        if begin < end:  # clocks went back: the repeated times have fired
            begin = end
        elif _count_local(cron, end, begin) and not _count_local(cron, begin, begin + MICROSECOND):
            count += 1  # the times in the gap coincide at the first instant after it
    return count + _count_local(cron, begin, _local(until, offset) + MICROSECOND)


def _local(at: datetime, offset: timedelta) -> datetime:
    return (at + offset).replace(tzinfo=None)


def _end_of_first_pass(zone: ZoneInfo, at: datetime, offset: timedelta) -> datetime:
    """Return the local time that clocks had reached before they last went back, if that was within a day."""
    change = clock_change(zone, at - DAY, at)
    return _local(at, offset) if change is None else _local(change, offset_at(zone, at - DAY))


def _clock_changes(zone: ZoneInfo, after: datetime, until: datetime) -> Iterator[datetime]:
    for year in range(after.year, until.year + 1):
        yield from (change for change in changes_in_year(zone, year) if after < change <= until)


@lru_cache(maxsize=1024)
def changes_in_year(zone: tzinfo, year: int) -> tuple[datetime, ...]:
    """Return the instants of a year at which a zone's clocks change."""
    changes: list[datetime] = []
    seen, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    while seen < end:
        near = min(seen + DAY, end)
        change = clock_change(zone, seen, near)
        if change is not None:
            changes.append(change)
        seen = change or near
    return tuple(changes)


def _count_local(cron: str, begin: datetime, end: datetime) -> int:
    """Count the matching naive times in [begin, end)."""
    if begin >= end:
        return 0
    rule, times = _parse(cron), _times_of_day(cron)
    count = len(times) * _count_days(rule, begin.date(), end.date())
    for at, sign in ((begin, -1), (end, 1)):
        if _matches_day(rule, at.date()):
            minutes = -((datetime.combine(at, time()) - at) // MINUTE)  # rounded up
            count += sign * bisect_left(times, minutes)
    return count


def _count_days(rule: CronSim, begin: date, end: date) -> int:
    days = (end - begin).days
    if rule.days.issuperset(range(1, 32)) and rule.weekdays.issuperset(range(7)) and len(rule.months) == 12:
        return days
    return sum(_matches_day(rule, begin + timedelta(days=number)) for number in range(days))


def _matches_day(rule: CronSim, day: date) -> bool:
    return day.month in rule.months and rule.match_day(day)


@lru_cache(maxsize=1024)
def _times_of_day(cron: str) -> tuple[int, ...]:
    """Return the minutes of a matching day at which a rule fires."""
    rule = _parse(cron)
    return tuple(sorted(60 * hour + minute for hour in rule.hours for minute in rule.minutes))


# ── Missed times ──────────────────────────────────────────────────────────────────────────────────────────────────────

# Planned times that are due run, are caught up, or are only recorded as missed. Every planned time is in exactly one
# piece, and every piece becomes exactly one row.


@dataclass(frozen=True, slots=True)
class Lateness:
    """Lateness of a wake: decided once, when no pause or limit holds it any more."""

    first_due_at: datetime
    is_missed: bool
    grace: timedelta = timedelta(0)  # instants less late than this are not missed

    def covers(self, at: datetime) -> bool:
        """Return whether this planned time was missed, not only an earlier one."""
        return self.is_missed and self.first_due_at - at > self.grace


@dataclass(frozen=True, slots=True)
class Piece:
    """A planned time, or a range of `covers` planned times that starts with it."""

    first: datetime
    covers: int


@value
class Plan:
    """The runs and skipped ranges for the planned times up to now, and the next planned time."""

    runs: tuple[Piece, ...]
    skipped: tuple[Piece, ...] = ()
    missed: int = 0
    next_at: datetime | None = None


def divide_missed(wake: Wake, lateness: Lateness, now: datetime, *, most: int) -> Plan:
    """Divide all planned times up to now, by the wake's `on_miss`, into at most `most` runs."""
    if not wake.is_recurring:
        piece = (Piece(wake.nominal_at, 1),)
        if lateness.is_missed and wake.on_miss == "skip":
            return Plan(runs=(), skipped=piece, missed=1)
        return Plan(runs=piece, missed=int(lateness.is_missed))
    grid = Grid.of(wake)
    due = grid.span(wake.nominal_at, now if wake.until is None else min(now, wake.until))
    next_at = due.next if wake.until is None or due.next <= wake.until else None
    whole = (Piece(wake.nominal_at, due.count),)
    if not lateness.is_missed:
        return Plan(runs=whole, next_at=next_at)
    late = grid.span(wake.nominal_at, lateness.first_due_at - lateness.grace - MICROSECOND)
    count = min(late.count, due.count)
    if wake.on_miss == "skip":
        rest = due.count - count
        runs = (Piece(late.next, rest),) if rest else ()
        return Plan(runs=runs, skipped=(Piece(wake.nominal_at, count),), missed=count, next_at=next_at)
    if wake.on_miss == "run_once":
        return Plan(runs=whole, missed=count, next_at=next_at)
    return Plan(runs=_one_by_one(grid, wake.nominal_at, due.count, most), missed=count, next_at=next_at)


def join_missed(pieces: Sequence[Piece]) -> Piece:
    """Join consecutive pieces."""
    return Piece(pieces[0].first, sum(piece.covers for piece in pieces))


def _one_by_one(grid: Grid, first: datetime, count: int, most: int) -> tuple[Piece, ...]:
    """Return one piece per planned time, the oldest first; the last one covers the rest."""
    instants = grid.times_from(first, max(1, min(count, most)))
    singles = [Piece(at, 1) for at in instants[:-1]]
    return (*singles, Piece(instants[-1], count - len(singles)))
