"""Divide the planned times that are due: run, catch up, or only record as missed.

Every planned time is in exactly one piece, and every piece becomes exactly one row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from wakeful.domain.types import Wake
from wakeful.domain.values import value
from wakeful.domain.wakes.recurrence import MICROSECOND, Grid


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


def divide(wake: Wake, lateness: Lateness, now: datetime, *, most: int) -> Plan:
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


def join(pieces: Sequence[Piece]) -> Piece:
    """Join consecutive pieces."""
    return Piece(pieces[0].first, sum(piece.covers for piece in pieces))


def _one_by_one(grid: Grid, first: datetime, count: int, most: int) -> tuple[Piece, ...]:
    """Return one piece per planned time, the oldest first; the last one covers the rest."""
    instants = grid.take(first, max(1, min(count, most)))
    singles = [Piece(at, 1) for at in instants[:-1]]
    return (*singles, Piece(instants[-1], count - len(singles)))
