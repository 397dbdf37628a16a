"""Limits of an agent's bookings: modes with their presets, free time, clamping, pauses.

Quiet hours, days and "today" are wall clock in the agent's IANA zone. Quiet hours last from the first time that clocks
show their beginning to the first time that they show their end, so a clock change neither splits nor skips them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from types import MappingProxyType
from typing import Literal
from zoneinfo import ZoneInfo

from wakeful.core.errors import Invalid, LimitReached
from wakeful.core.types import FOREVER, Bounds, Pause, ScheduledBy, ScheduleMode, Wake
from wakeful.core.zones import load_zone, resolve_wall_clock

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
MAX_HORIZON = 3660 * DAY
MAX_STEPS = 1000  # every week has free time, so a search that takes more steps would never end
NIGHT_FROM, NIGHT_TO = time(22), time(7)


def _preset(mode: ScheduleMode, horizon: timedelta, interval: timedelta, cap: int, *, rests: bool) -> Bounds:
    return Bounds(
        mode=mode,
        max_horizon=horizon,
        min_interval=interval,
        daily_cap=cap,
        quiet_from=NIGHT_FROM if rests else None,
        quiet_to=NIGHT_TO if rests else None,
    )


PRESETS: Mapping[ScheduleMode, Bounds] = MappingProxyType(
    {
        "ambient": _preset("ambient", 7 * DAY, HOUR, 6, rests=True),
        "reactive": _preset("reactive", DAY, 5 * MINUTE, 48, rests=False),
        "project": _preset("project", 30 * DAY, HOUR, 4, rests=True),
        "manual": _preset("manual", 7 * DAY, 15 * MINUTE, 0, rests=False),
    }
)


class BadBounds(Invalid):
    """The bounds contradict each other."""

    code = "bad_bounds"


def is_customised(bounds: Bounds) -> bool:
    """Return whether someone has edited the bounds since the mode was chosen."""
    return bounds != PRESETS[bounds.mode]


def check_bounds(bounds: Bounds) -> None:
    """Refuse bounds that would never allow a run, or that make no sense."""
    if (bounds.quiet_from is None) != (bounds.quiet_to is None):
        raise BadBounds("Quiet hours need a beginning and an end. Give both, or neither.", field="quiet_to")
    if bounds.quiet_from is not None and bounds.quiet_from == bounds.quiet_to:
        raise BadBounds(
            f"Quiet hours that begin and end at {bounds.quiet_from.isoformat('minutes')} leave no time to run. "
            "Change one end, or leave out both.",
            field="quiet_to",
        )
    if not bounds.days or not bounds.days <= frozenset(range(7)):
        raise BadBounds(f"{sorted(bounds.days)} are not days of the week. Give at least one of 0 to 6.", field="days")
    if bounds.min_interval < timedelta(0):
        raise BadBounds(f"A shortest interval of {bounds.min_interval} is negative.", field="min_interval")
    if bounds.max_horizon <= timedelta(0) or not bounds.min_interval <= bounds.max_horizon <= MAX_HORIZON:
        raise BadBounds(
            f"A horizon of {bounds.max_horizon} does not fit: it must be positive, at least the shortest interval "
            f"({bounds.min_interval}) and at most {MAX_HORIZON.days} days.",
            field="max_horizon",
        )
    if bounds.daily_cap < 0:
        raise BadBounds(f"A daily cap of {bounds.daily_cap} is negative. 0 allows no runs.", field="daily_cap")


# ── Free time ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Stretch:
    """A period in which an agent may not run; the end is not part of it."""

    start: datetime
    end: datetime
    reason: str


def local_day_start(at: datetime, zone_name: str) -> datetime:
    """Return the first instant of the local day of `at`."""
    zone = load_zone(zone_name)
    return _start_of(at.astimezone(zone).date(), zone)


def next_midnight(at: datetime, zone_name: str) -> datetime:
    """Return the first instant of the local day after that of `at`."""
    zone = load_zone(zone_name)
    return _start_of(at.astimezone(zone).date() + DAY, zone)


def free_from(
    at: datetime, bounds: Bounds | None, zone_name: str, pauses: Sequence[Pause]
) -> tuple[datetime, tuple[str, ...]]:
    """Return the first time from `at` on without a pause, quiet hours or a forbidden day, and the reasons met.

    Without bounds only the pauses count. FOREVER if there is none.
    """
    if bounds is None and not pauses:
        return at, ()
    reasons: dict[str, None] = {}  # each once, in the order met
    for _ in range(MAX_STEPS + len(pauses)):
        stretch = stretch_at(at, bounds, zone_name, pauses)
        if stretch is None:
            return at, tuple(reasons)
        at = stretch.end
        reasons[stretch.reason] = None
        if at >= FOREVER:
            break
    return FOREVER, tuple(reasons)


def stretch_at(at: datetime, bounds: Bounds | None, zone_name: str, pauses: Sequence[Pause]) -> Stretch | None:
    """Return the pause, quiet hours or forbidden day that contains `at`: the first that applies."""
    for pause in pauses:
        if pause.started_at <= at < pause.until:
            return Stretch(pause.started_at, pause.until, "paused")
    if bounds is None:
        return None
    zone = load_zone(zone_name)
    today = at.astimezone(zone).date()
    return _quiet_stretch(at, today, bounds, zone) or _closed_day(today, bounds, zone)


def _quiet_stretch(at: datetime, today: date, bounds: Bounds, zone: ZoneInfo) -> Stretch | None:
    if bounds.quiet_from is None or bounds.quiet_to is None:
        return None
    nights = int(bounds.quiet_to < bounds.quiet_from)
    for day in (today - DAY, today):
        start = resolve_wall_clock(datetime.combine(day, bounds.quiet_from), zone)
        end = resolve_wall_clock(datetime.combine(day + nights * DAY, bounds.quiet_to), zone)
        if start <= at < end:
            return Stretch(start, end, "quiet_hours")
    return None


def _closed_day(today: date, bounds: Bounds, zone: ZoneInfo) -> Stretch | None:
    if today.weekday() in bounds.days:
        return None
    return Stretch(_start_of(today, zone), _start_of(today + DAY, zone), "day_not_allowed")


def _start_of(day: date, zone: ZoneInfo) -> datetime:
    return resolve_wall_clock(datetime.combine(day, time()), zone)


# ── Clamping ──────────────────────────────────────────────────────────────────────────────────────────────────────────

# For an agent, a time that is past, within `min_interval` from now, in quiet hours or on a forbidden day is moved
# later; one beyond the horizon is moved back to the last free whole minute. A pause and the daily cap refuse the
# result. For a person only the present and the horizon count.


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


# ── Pauses ────────────────────────────────────────────────────────────────────────────────────────────────────────────


PausePreset = Literal["1h", "4h", "tomorrow", "indefinitely"]

_LENGTHS: dict[PausePreset, timedelta] = {"1h": timedelta(hours=1), "4h": timedelta(hours=4)}


class BadPause(Invalid):
    code = "bad_pause"


def end_of(
    until: datetime | None,
    preset: PausePreset | None,
    now: datetime,
    zone_name: str,
    length: timedelta | None = None,
) -> datetime:
    """Return when a pause ends: at an instant, after a length, as a preset says, or when someone resumes."""
    given = {
        "until": until and until.isoformat(),
        "preset": preset,
        "seconds": length and round(length.total_seconds()),
    }
    named = [f"{name!r} ({value!r})" for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise BadPause(f"Both {named[0]} and {named[1]} are given. Give one of them.", field="preset")
    if until is not None and until <= now:
        raise BadPause(f"A pause until {until.isoformat()} is over already. Give a later time.", field="until")
    if preset == "tomorrow":
        return next_midnight(now, zone_name)
    if preset in _LENGTHS:
        return now + _LENGTHS[preset]
    if length is not None:
        return now + length
    return FOREVER if until is None or until >= FOREVER else until.astimezone(UTC)


def is_held(wake: Wake, active: Sequence[Pause]) -> bool:
    """Return whether one of the pauses that are active now holds a live wake at its planned time."""
    return wake.is_live and any(_concerns(pause, wake) and wake.nominal_at < pause.until for pause in active)


def is_held_for_good(wake: Wake, active: Sequence[Pause]) -> bool:
    """Return whether a wake waits for someone to resume it."""
    return any(_concerns(pause, wake) and pause.until >= FOREVER for pause in active)


def _concerns(pause: Pause, wake: Wake) -> bool:
    return pause.user_id == wake.user_id and pause.agent_id in (None, wake.agent_id)
