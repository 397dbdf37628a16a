"""Move planned wall-clock times when the rules of their time zone have changed.

A wake has the instant that its wall-clock time meant when it was planned. The offsets of that time are saved, so the
wall-clock time can be found again.
"""

from bisect import bisect_right
from collections.abc import Collection
from datetime import UTC, datetime, tzinfo

from wakeful.core.types import Decision, Wake
from wakeful.core.values import replace
from wakeful.core.zones import Offsets, load_zone, offset_at, resolve_wall_clock
from wakeful.timing.fire import decision
from wakeful.timing.recurrence import MICROSECOND, Grid, changes_in_year

CHANGED = "zone_rules_changed"
_YEARS = 10


def offsets_of(zone: tzinfo, year: int) -> Offsets:
    """Return the offsets of a zone for ten years."""
    changes = [change for each in range(year, year + _YEARS) for change in changes_in_year(zone, each)]
    return tuple((at, offset_at(zone, at)) for at in (datetime(year, 1, 1, tzinfo=UTC), *changes))


def replan(wake: Wake, was: Offsets, fired: Collection[datetime], now: datetime) -> Wake:
    """Return a wake at the instant that its wall-clock time means now, which was planned with the offsets of before.

    A cron rule for every hour is even in elapsed time: it continues with its next time. `fired` are planned times that
    have a run already.
    """
    planned = wake.nominal_at
    ends = was[0][0].replace(year=was[0][0].year + _YEARS)
    if wake.timezone is None or wake.first_due_at is not None or not was[0][0] <= planned < ends:
        return wake
    offset = was[bisect_right(was, planned, key=lambda each: each[0]) - 1][1]
    at = resolve_wall_clock((planned + offset).replace(tzinfo=None), load_zone(wake.timezone))
    if wake.cron is not None and (grid := Grid.of(wake)).is_even:
        at = planned if planned <= now else grid.next_after(now, after=max(min(planned, at) - MICROSECOND, now))
    if at == planned or (wake.until is not None and at > wake.until):
        return wake
    while at in fired:  # a run's id is made from its planned time
        at += MICROSECOND
    attempt_at = at if wake.attempt_at == planned else max(wake.attempt_at, at)
    return replace(wake, nominal_at=at, attempt_at=attempt_at, updated_at=max(wake.updated_at, now))


def explain(before: Wake, after: Wake, now: datetime) -> Decision:
    """Return the record of why a wake has a different time."""
    was, then = before.nominal_at.isoformat(), after.nominal_at.isoformat()
    return decision(after, now, CHANGED, was=was, next=then, zone=after.timezone)
