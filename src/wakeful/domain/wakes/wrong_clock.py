"""Replan wakes that were planned while the clock was ahead.

A wake's `updated_at` says when it was last planned. If that is in the future, the clock was wrong then or is wrong now;
either way the times that were counted from it are too far away.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from wakeful.domain import ids
from wakeful.domain.inbox.notices import as_text
from wakeful.domain.texts import title_of
from wakeful.domain.types import FOREVER, Decision, Notice, Pause, Wake
from wakeful.domain.values import replace
from wakeful.domain.wakes.duration import format_duration
from wakeful.domain.wakes.fire import decision
from wakeful.domain.wakes.recurrence import MICROSECOND, Grid

REPLANNED = "replanned"
MUCH = timedelta(days=1)  # if the clock was ahead by more, a requested time is wrong too
_LITTLE = timedelta(minutes=1)  # tolerance, to avoid firing an interval twice
_MAX_NAMED = 5


def replan(wake: Wake, fired: Collection[datetime], now: datetime) -> Wake:
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


def explain(before: Wake, after: Wake, now: datetime) -> Decision:
    """Return the record of why a wake has a different time."""
    ahead = round((before.updated_at - now).total_seconds())
    was, then = before.nominal_at.isoformat(), after.nominal_at.isoformat()
    return decision(before, now, REPLANNED, was=was, next=then, clock_ahead_seconds=ahead)


def to_notice(planned: Sequence[tuple[Wake, Wake]], now: datetime) -> Notice:
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
