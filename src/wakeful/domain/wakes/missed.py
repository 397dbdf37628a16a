"""Divide the planned times that are due: which run, which are caught up, which are only recorded as missed.

Every instant ends up in exactly one piece, and every piece becomes exactly one row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from wakeful.domain.types import Wake
from wakeful.domain.values import value
from wakeful.domain.wakes.recurrence import Grid

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Lateness:
    """Lateness of a wake: decided once, when no pause or limit of ours held it any more."""

    first_due_at: datetime
    is_missed: bool
    grace: timedelta = timedelta(0)  # instants less late than this are not missed

    def covers(self, at: datetime) -> bool:
        """Return whether this very instant was missed, and not only one before it."""
        return self.is_missed and self.first_due_at - at > self.grace


@dataclass(frozen=True, slots=True)
class Piece:
    """A planned instant, or a counted range that begins with it."""

    first: datetime
    covers: int


@value
class Plan:
    """The runs and skipped ranges for the planned times up to now, and the next planned time."""

    runs: tuple[Piece, ...]
    skipped: tuple[Piece, ...] = ()
    missed: int = 0
    next_at: datetime | None = None


def divide(wake: Wake, lateness: Lateness, now: datetime, *, most: int) -> Plan:
    """Divide all instants from the wake's nominal one up to now, by its `on_miss`, into at most `most` runs."""
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
    late = grid.span(wake.nominal_at, lateness.first_due_at - lateness.grace - _MICROSECOND)
    count = min(late.count, due.count)
    if wake.on_miss == "skip":
        rest = due.count - count
        runs = (Piece(late.next, rest),) if rest else ()
        return Plan(runs=runs, skipped=(Piece(wake.nominal_at, count),), missed=count, next_at=next_at)
    if wake.on_miss == "run_once":
        return Plan(runs=whole, missed=count, next_at=next_at)
    return Plan(runs=_one_by_one(grid, wake.nominal_at, due.count, most), missed=count, next_at=next_at)


def join(pieces: Sequence[Piece]) -> Piece:
    """Make one piece of several that follow each other."""
    return Piece(pieces[0].first, sum(piece.covers for piece in pieces))


def _one_by_one(grid: Grid, first: datetime, count: int, most: int) -> tuple[Piece, ...]:
    """The oldest each on their own; the last run takes whatever is left over."""
    instants = grid.take(first, max(1, min(count, most)))
    singles = [Piece(at, 1) for at in instants[:-1]]
    return (*singles, Piece(instants[-1], count - len(singles)))
