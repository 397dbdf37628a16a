"""Limits of an agent's own next run: modes with their presets, and the times they allow.

Quiet hours, days and "today" are wall clock in the agent's IANA zone. Quiet hours last from the first time that clocks
show their beginning to the first time that they show their end, so a clock change neither splits nor skips them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from types import MappingProxyType
from zoneinfo import ZoneInfo

from wakeful.domain.errors import Invalid
from wakeful.domain.types import FOREVER, Bounds, Pause, ScheduleMode
from wakeful.domain.zones import load_zone, resolve_wall_clock

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
