"""Clamp the requested time of a next run: keep it, move it, or refuse it.

For an agent, a time that is past, within `min_interval` from now, in quiet hours or on a forbidden day is moved later;
one beyond the horizon is moved back to the last free whole minute. A pause and the daily cap refuse the result. For a
person only the present and the horizon count.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from wakeful.domain.bounds.bounds import free_from, next_midnight, stretch_at
from wakeful.domain.errors import LimitReached
from wakeful.domain.types import FOREVER, Bounds, Pause, ScheduledBy
from wakeful.domain.zones import load_zone

WHY = {
    "manual": "its mode is manual, so only a person can book it",
    "daily_cap": "its daily limit of runs is used up",
    "paused": "it is paused then",
    "max_horizon": "no minute before its horizon is free",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Clamped:
    """The requested time, and the one that may be booked."""

    requested: datetime
    at: datetime
    reasons: tuple[str, ...]  # why it was moved, in the order of the moves
    remaining_today: int  # of the daily cap, after this booking

    @property
    def clamped(self) -> bool:
        return bool(self.reasons)


class BookingRefused(LimitReached):
    """The time is refused; booking exactly `earliest`, if there is one, would succeed."""

    code = "booking_refused"

    def __init__(
        self, requested: datetime, reasons: tuple[str, ...], earliest: datetime | None, zone_name: str
    ) -> None:
        why = next(WHY[reason] for reason in reversed(reasons) if reason in WHY)
        advice = (
            "No time is acceptable at present; your user can change these bounds."
            if earliest is None
            else f"The earliest acceptable time is {_show(earliest, zone_name)}."
        )
        super().__init__(f"The next run cannot be booked for {_show(requested, zone_name)}: {why}. {advice}")
        self.requested = requested
        self.reasons = reasons
        self.earliest = earliest


def clamp(
    requested: datetime,
    now: datetime,
    bounds: Bounds,
    zone_name: str,
    pauses: Sequence[Pause],
    used_today: int,
    by: ScheduledBy,
) -> Clamped:
    """Return the time that may be booked instead of the requested one, or refuse with the earliest acceptable time."""
    request = _Request(requested, now, bounds, zone_name, pauses, used_today)
    at, reasons = request.clamp_agent() if by == "agent" else request.clamp_person()
    is_counted = by == "agent" and request.is_today(at)  # a person's booking does not count
    remaining = bounds.daily_cap - used_today - int(is_counted)
    return Clamped(requested=requested, at=at, reasons=reasons, remaining_today=max(remaining, 0))


@dataclass(frozen=True, slots=True)
class _Request:
    requested: datetime
    now: datetime
    bounds: Bounds
    zone_name: str
    pauses: Sequence[Pause]
    used_today: int

    @property
    def soonest(self) -> datetime:
        return self.now + self.bounds.min_interval

    @property
    def latest(self) -> datetime:
        return self.now + self.bounds.max_horizon

    def is_today(self, at: datetime) -> bool:
        return at < next_midnight(self.now, self.zone_name)

    def clamp_person(self) -> tuple[datetime, tuple[str, ...]]:
        """Move a person's time into the range from now to the horizon."""
        if self.requested < self.now:
            return self.now, ("past",)
        return (self.latest, ("max_horizon",)) if self.requested > self.latest else (self.requested, ())

    def clamp_agent(self) -> tuple[datetime, tuple[str, ...]]:
        """Move an agent's time to one that satisfies every limit, or refuse it."""
        if self.bounds.mode == "manual":
            raise BookingRefused(self.requested, ("manual",), None, self.zone_name)
        at, reasons = self._move_later()
        if at > self.latest:
            at, reasons = self._move_back(reasons)
        refusals = self._refusals(at)
        if refusals:
            raise self._refusal((*reasons, *refusals), at)
        return at, reasons

    def _move_later(self) -> tuple[datetime, tuple[str, ...]]:
        at, reasons = self.requested, ()
        if at < self.now:
            at, reasons = self.now, ("past",)
        if at < self.soonest:
            at, reasons = self.soonest, (*reasons, "min_interval")
        if at > self.latest:
            return at, reasons
        at, held = free_from(at, self.bounds, self.zone_name, ())
        return at, (*reasons, *held)

    def _move_back(self, reasons: tuple[str, ...]) -> tuple[datetime, tuple[str, ...]]:
        met = dict.fromkeys((*reasons, "max_horizon"))
        at = _whole_minute(self.latest)
        while at >= self.soonest:
            stretch = stretch_at(at, self.bounds, self.zone_name, ())
            if stretch is None:
                return at, tuple(met)
            met[stretch.reason] = None
            at = _whole_minute(stretch.start - timedelta(microseconds=1))
        raise self._refusal(tuple(met), self.soonest)

    def _refusals(self, at: datetime) -> tuple[str, ...]:
        is_paused = any(pause.started_at <= at < pause.until for pause in self.pauses)
        # A cap of 0 allows no run on any day, so a later day does not help.
        is_capped = self._is_used_up and (self.is_today(at) or self.bounds.daily_cap == 0)
        return ("paused",) * is_paused + ("daily_cap",) * is_capped

    def _refusal(self, reasons: tuple[str, ...], start: datetime) -> BookingRefused:
        if self._is_used_up:
            start = max(start, next_midnight(self.now, self.zone_name))
        earliest, _ = free_from(start, self.bounds, self.zone_name, self.pauses)
        is_acceptable = earliest <= self.latest and self.bounds.daily_cap > 0
        return BookingRefused(self.requested, reasons, earliest if is_acceptable else None, self.zone_name)

    @property
    def _is_used_up(self) -> bool:
        return self.used_today >= self.bounds.daily_cap


def _whole_minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)


def _show(at: datetime, zone_name: str) -> str:
    # A time in the calendar's last days may have no local form.
    return (at if at >= FOREVER else at.astimezone(load_zone(zone_name))).isoformat()
