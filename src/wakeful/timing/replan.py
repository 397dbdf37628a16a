"""Plan wakes again whose times are wrong: a wrong clock planned them, or the rules of their zone have changed."""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from wakeful.core import ids
from wakeful.core.texts import title_of
from wakeful.core.types import FOREVER, Decision, Notice, Pause, Wake
from wakeful.core.values import replace
from wakeful.core.zones import Offsets, format_duration, load_zone, offset_at, resolve_wall_clock
from wakeful.notices.texts import as_text
from wakeful.timing.fire_rule import decision
from wakeful.timing.recurrence import MICROSECOND, Grid, changes_in_year

REPLANNED = "replanned"
MUCH = timedelta(days=1)  # if the clock was ahead by more, a requested time is wrong too
_LITTLE = timedelta(minutes=1)  # tolerance, to avoid firing an interval twice
_MAX_NAMED = 5
ZONE_RULES_CHANGED = "zone_rules_changed"
_YEARS = 10

# ── The clock was ahead ───────────────────────────────────────────────────────────────────────────────────────────────

# A wake's `updated_at` says when it was last planned. If that is in the future, the clock was wrong then or is wrong
# now; either way the times that were counted from it are too far away.


def replan_after_wrong_clock(wake: Wake, fired: Collection[datetime], now: datetime) -> Wake:
    """Return a wake with the next time of its rule from now, without holds that the wrong clock set.

    `fired` are the times after now that have a run already: a wall-clock time fires once, so a cron rule continues with
    the first that has none. An interval continues within one interval, though clocks may show one of its times for the
    second time.
    """
    planned_at = wake.updated_at
    right = replace(wake, updated_at=now)
    if wake.first_due_at is not None and wake.first_due_at > now:  # decided by the wrong clock, so decided again
        right = replace(right, first_due_at=None, is_missed=False)
    if wake.is_recurring and not (_was_asked_for(wake) and planned_at - now <= MUCH):
        next_at = _next_by_rule(wake, fired, now)
        if next_at < wake.nominal_at:
            return replace(right, nominal_at=next_at, attempt_at=next_at, held_by=None, deferrals=0)
    return replace(right, attempt_at=max(min(wake.attempt_at, now), wake.nominal_at))


def restart_pause(pause: Pause, now: datetime) -> Pause:
    """Return a pause that was set while the clock was far ahead: it starts now, with the same length."""
    if pause.until == FOREVER:
        return replace(pause, started_at=now)
    return replace(pause, started_at=now, until=now + (pause.until - pause.started_at))


def explain_wrong_clock(before: Wake, after: Wake, now: datetime) -> Decision:
    """Return the record of why a wake has a different time."""
    ahead = round((before.updated_at - now).total_seconds())
    was, then = before.nominal_at.isoformat(), after.nominal_at.isoformat()
    return decision(before, now, REPLANNED, was=was, next=then, clock_ahead_seconds=ahead)


def wrong_clock_notice(planned: Sequence[tuple[Wake, Wake]], now: datetime) -> Notice:
    """Return the notice about a person's wakes that were replanned, given as pairs of before and after."""
    ahead = max(before.updated_at for before, _ in planned) - now
    named = [
        f"{title_of(after.comment, after.instructions)!r} at {{next_{number}}}"
        for number, (_, after) in enumerate(planned[:_MAX_NAMED])
    ]
    more = len(planned) - len(named)
    several = f"{len(planned)} recurring runs were" if len(planned) > 1 else "A recurring run was"
    return Notice(
        id=ids.new_id(now),
        user_id=planned[0][0].user_id,
        agent_id=None,
        code=REPLANNED,
        title=f"{several} rescheduled",
        body=(
            f"The server's clock went back by at least {format_duration(ahead)}, so their next times were too far "
            f"away. Next: {', '.join(named)}{f', and {more} more' if more else ''}. Earlier runs are not repeated."
        ),
        once_key=f"{REPLANNED}:{planned[0][0].id}:{now.isoformat()}",
        created_at=now,
        times=as_text({f"next_{number}": after.nominal_at for number, (_, after) in enumerate(planned[:_MAX_NAMED])}),
    )


def _was_asked_for(wake: Wake) -> bool:
    """Return whether the next time was requested: it is later than the rule would plan it."""
    return wake.nominal_at > _next_by_rule(wake, (), wake.updated_at)


def _next_by_rule(wake: Wake, fired: Collection[datetime], now: datetime) -> datetime:
    if wake.every is None:
        grid = Grid.of(wake)
        at = grid.next_after(now, after=now)
        while at in fired:
            at = grid.next_after(at, after=at)
        return at
    if wake.nominal_at <= now + wake.every + _LITTLE:
        return wake.nominal_at
    at = wake.nominal_at - (wake.nominal_at - now - MICROSECOND) // wake.every * wake.every
    # A run's id is made from its planned time, so times that were used already are shifted by a microsecond.
    phases, shift = {(each - at) % wake.every for each in fired}, timedelta(0)
    while shift in phases:
        shift += MICROSECOND
    return at + shift


# ── The rules of a time zone have changed ─────────────────────────────────────────────────────────────────────────────

# A wake has the instant that its wall-clock time meant when it was planned. The offsets of that time are saved, so the
# wall-clock time can be found again.


def offsets_of(zone: tzinfo, year: int) -> Offsets:
    """Return the offsets of a zone for ten years."""
    changes = [change for each in range(year, year + _YEARS) for change in changes_in_year(zone, each)]
    return tuple((at, offset_at(zone, at)) for at in (datetime(year, 1, 1, tzinfo=UTC), *changes))


def replan_after_zone_change(wake: Wake, was: Offsets, fired: Collection[datetime], now: datetime) -> Wake:
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


def explain_zone_change(before: Wake, after: Wake, now: datetime) -> Decision:
    """Return the record of why a wake has a different time."""
    was, then = before.nominal_at.isoformat(), after.nominal_at.isoformat()
    return decision(after, now, ZONE_RULES_CHANGED, was=was, next=then, zone=after.timezone)
