"""Plan wakes again that were planned while the clock was ahead.

When a wake was last planned stands in its `updated_at`. If that lies ahead of now, the clock was wrong then or is wrong
now; either way the times that were counted from it are too far off.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from wakeful.domain import ids
from wakeful.domain.types import FOREVER, Decision, Notice, Pause, Wake
from wakeful.domain.values import replace
from wakeful.domain.wakes.duration import format_duration
from wakeful.domain.wakes.recurrence import MICROSECOND, Grid

REPLANNED = "replanned"
MUCH = timedelta(days=1)  # a clock that was ahead by more makes a time that was asked for worthless too
_LITTLE = timedelta(minutes=1)  # not worth an interval's second firing
_MAX_NAMED = 5


def put_right(wake: Wake, fired: Collection[datetime], now: datetime) -> Wake:
    """Plan a wake again as its rule allows from now, and let go of what held it by the wrong clock.

    `fired` are the instants after now that have a row already: a wall-clock time has one firing, so a cron rule goes on
    with the first that has none. An interval goes on within one interval, though clocks may show a time of its grid
    for the second time.
    """
    planned_at = wake.updated_at
    right = replace(wake, updated_at=now)
    if wake.first_due_at is not None and wake.first_due_at > now:  # judged by the wrong clock, and to be judged again
        right = replace(right, first_due_at=None, is_missed=False)
    if wake.is_recurring and not (_was_asked_for(wake) and planned_at - now <= MUCH):
        next_at = _next_by_rule(wake, fired, now)
        if next_at < wake.nominal_at:
            return replace(right, nominal_at=next_at, attempt_at=next_at, held_by=None, deferrals=0)
    return replace(right, attempt_at=max(min(wake.attempt_at, now), wake.nominal_at))


def put_pause_right(pause: Pause, now: datetime) -> Pause:
    """Let a pause that was made by a clock far ahead begin now and last as long as it was to last."""
    if pause.until == FOREVER:
        return replace(pause, started_at=now)
    return replace(pause, started_at=now, until=now + (pause.until - pause.started_at))


def explain(before: Wake, after: Wake, now: datetime) -> Decision:
    """Say why a wake has another time."""
    ahead = round((before.updated_at - now).total_seconds())
    detail = {"was": before.nominal_at.isoformat(), "next": after.nominal_at.isoformat(), "clock_ahead_seconds": ahead}
    return Decision(wake_id=before.id, nominal_at=before.nominal_at, at=now, code=REPLANNED, detail=detail)


def to_notice(planned: Sequence[tuple[Wake, Wake]], now: datetime) -> Notice:
    """Return the notice about all wakes of a person that were planned again, each before and after."""
    ahead = max(before.updated_at for before, _ in planned) - now
    named = [
        f"{repr(after.comment) if after.comment else f'wake {after.id}'} at {after.nominal_at:%Y-%m-%d %H:%M} UTC"
        for _, after in planned[:_MAX_NAMED]
    ]
    more = len(planned) - len(named)
    several = f"{len(planned)} recurring wakes were" if len(planned) > 1 else "A recurring wake was"
    return Notice(
        id=ids.new_id(now),
        user_id=planned[0][0].user_id,
        agent_id=None,
        code=REPLANNED,
        title=f"{several} planned again",
        body=(
            f"The server's clock went back by at least {format_duration(ahead)}, so their next times were too far "
            f"away. Next: {', '.join(named)}{f', and {more} more' if more else ''}. What had run before stays done."
        ),
        once_key=f"{REPLANNED}:{planned[0][0].id}:{now.isoformat()}",
        created_at=now,
    )


def _was_asked_for(wake: Wake) -> bool:
    """Return whether someone chose the next time: it was further away than the rule would plan it."""
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
    # A run's id is made from its planned instant, so a grid that was used already is left by a microsecond.
    phases, shift = {(each - at) % wake.every for each in fired}, timedelta(0)
    while shift in phases:
        shift += MICROSECOND
    return at + shift
