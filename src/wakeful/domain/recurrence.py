"""The planned grid of a recurring wake: an interval from an anchor, or a cron expression in an IANA zone.

An interval counts real time; clock changes do not touch it. A cron expression has five fields (`L` and `#` work too)
and follows the wall clock:

- One whose hour field admits every hour (`0 * * * *`, `*/15 * * * *`) fires whenever clocks show a matching minute, so
  a repeated hour has its firings twice and a skipped hour has none: real hours pass evenly.
- Any other (`30 2 * * *`, `0 */2 * * *`, `*/15 2 * * *`) names wall-clock times, and each is kept once: times in a
  spring gap fall together on the first instant after it, a time that comes twice in autumn fires the first time.

Debian's cron decides by a leading `*` in the minute or hour field instead, and so drops `*/15 2 * * *` in spring and
fires `0 */2 * * *` twice in autumn.
"""

from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Self
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from wakeful.domain.errors import Invalid
from wakeful.domain.types import FOREVER, Wake
from wakeful.domain.zones import clock_change, load_zone, offset_at, resolve_wall_clock

SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)  # a calendar that has no match in 50 years never has one


class BadCron(Invalid):
    """The expression is not one that we can plan by."""

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
    """Neither an interval nor a cron expression says when, or both do."""

    code = "recurrence_unclear"

    def __init__(self) -> None:
        super().__init__(
            "A recurring wake needs a positive interval or a cron expression, exactly one of them.",
            field="interval_seconds",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The planned instants from the first one up to some moment.

    With a count of 0 nothing was planned up to then, and all three are the first instant.
    """

    first: datetime
    last: datetime
    count: int
    next: datetime  # the first one after that moment; FOREVER if there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """When a recurring wake is planned to fire."""

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

    def next_after(self, anchor: datetime, after: datetime) -> datetime:
        """Return the first planned instant strictly after `after`, not before the anchor; FOREVER if there is none."""
        return anchor if after < anchor else next(self._following(anchor, after), FOREVER)

    def span(self, first: datetime, until: datetime) -> Span:
        """Describe the planned instants from `first`, itself planned, up to and including `until`."""
        if first > until:
            return Span(first=first, last=first, count=0, next=first)
        if self.every is not None:
            steps = (until - first) // self.every
            last = first + steps * self.every
            return Span(first=first, last=last, count=steps + 1, next=self.next_after(first, after=until))
        last, count = first, 1
        for at in self._following(first, first):
            if at > until:
                return Span(first=first, last=last, count=count, next=at)
            last, count = at, count + 1
        return Span(first=first, last=last, count=count, next=FOREVER)

    def take(self, first: datetime, count: int) -> list[datetime]:
        """Return the first planned instants, beginning with `first`; fewer if time itself ends."""
        return [first, *islice(self._following(first, first), count - 1)] if count > 0 else []

    def _following(self, anchor: datetime, after: datetime) -> Iterator[datetime]:
        """Yield the planned instants after `after`, one by one, as far as the calendar goes."""
        with suppress(OverflowError):
            if self.every is not None:
                at = anchor + ((after - anchor) // self.every + 1) * self.every
                while True:
                    yield at
                    at += self.every
            elif self.cron is not None:
                if self.timezone is None:
                    raise CronNeedsZone(self.cron)
                plan = _by_the_clock if len(_parse(self.cron).hours) == 24 else _each_time_once
                yield from plan(self.cron, load_zone(self.timezone), after)


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


def _local_matches(cron: str, after: datetime) -> CronSim:
    """Return an iterator over the naive times after a naive time; parsing costs more than copying."""
    matches = copy(_parse(cron))
    matches.dt = after.replace(microsecond=0)
    return matches


def _each_time_once(cron: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    last = after
    for local in _local_matches(cron, after.astimezone(zone).replace(tzinfo=None)):
        at = resolve_wall_clock(local, zone)
        # Not so after a gap, where several times meet, and in the second pass of a repeated hour.
        if at > last:
            yield at
            last = at


def _by_the_clock(cron: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Walk from clock change to clock change: between two of them the offset is fixed and local time is plain."""
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
            if near < at:  # the clocks may change on the way there: look again from close by
                seen = begin = at - DAY
                offset = offset_at(zone, seen)
                break
            yield at
            seen = at
        else:
            return
