"""Time zones: loading one by name, and converting wall-clock times to instants."""

import difflib
import re
from bisect import bisect_left
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from wakeful.domain.errors import Invalid

_UTC = frozenset(
    f"{prefix}{name}" for prefix in ("", "Etc/") for name in ("UTC", "UCT", "GMT", "Zulu", "Universal", "Greenwich")
)
MAX_OFFSET = timedelta(hours=14)  # Kiritimati has the largest offset
OFFSET = re.compile(r"([+-])(\d\d):([0-5]\d)", re.ASCII)


class UnknownZone(Invalid):
    """The name is not an IANA time zone."""

    code = "unknown_zone"

    def __init__(self, name: str) -> None:
        nearest = _nearest(name)
        advice = f"Did you mean {nearest!r}?" if nearest else "Use an IANA name such as 'Europe/Berlin' or 'UTC'."
        super().__init__(f"{name[:80]!r} is not a known time zone. {advice}", field="timezone", hint=nearest)


class BadOffset(Invalid):
    """The text is not a UTC offset of any time zone."""

    code = "bad_offset"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text[:80]!r} is not a UTC offset. Use '+HH:MM' or '-HH:MM', at most 14:00 either way.",
            field="timezone_offset",
        )


_loaded: dict[str, ZoneInfo] = {}


def load_zone(name: str) -> ZoneInfo:
    """Return the IANA zone of that exact name."""
    if name in _loaded:
        return _loaded[name]
    # ZoneInfo alone also loads 'right/...' (leap seconds) and, on some file systems, names in the wrong case.
    if name not in _zone_names():
        raise UnknownZone(name)
    return _loaded.setdefault(name, ZoneInfo(name))


def loaded_zones() -> frozenset[str]:
    """Return the zones that this process has used; no wake is planned by another one."""
    return frozenset(_loaded)


def reload() -> None:
    """Forget the zones that were loaded, so that the next use reads them from the data as it is now."""
    for cached in (_zone_names, _by_lower_case):
        cached.cache_clear()
    _loaded.clear()
    ZoneInfo.clear_cache()


def find_zone(name: str) -> str | None:
    """Return the IANA name that equals this one, ignoring case, if there is one."""
    return _by_lower_case().get(name.lower())


def is_same_zone(one: str, other: str) -> bool:
    """Return whether two names mean the same zone; of aliases only those of UTC are known."""
    return one == other or {one, other} <= _UTC


def offset_zone(text: str) -> tzinfo:
    """Return the fixed zone of an offset such as '+02:00'."""
    match = OFFSET.fullmatch(text)
    if match is None:
        raise BadOffset(text)
    sign, hours, minutes = match.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    if offset > MAX_OFFSET:
        raise BadOffset(text)
    return timezone(-offset if sign == "-" else offset)


def write_time(at: datetime, zone: str | None) -> str:
    """Return a time for people, in their zone, with its name; in UTC if theirs is not known."""
    name = zone or "UTC"
    return f"{at.astimezone(load_zone(name)):%Y-%m-%d %H:%M:%S} ({name})"


def resolve_wall_clock(local: datetime, zone: tzinfo) -> datetime:
    """Return the UTC instant at which clocks in the zone show `local`, a naive time.

    A time in a spring gap means the first instant after the gap; one that comes twice in autumn means the first.
    """
    at = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if at.astimezone(zone).replace(tzinfo=None, fold=0) == local:
        return at
    # In a gap, fold=0 uses the offset from before the change and gives a time after it; fold=1 one before it.
    ahead = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    return clock_change(zone, ahead, at) or at


def clock_change(zone: tzinfo, after: datetime, until: datetime) -> datetime | None:
    """Return the instant in (after, until] at which the zone's offset changes, if its two ends differ."""
    before = offset_at(zone, after)
    if offset_at(zone, until) == before:
        return None
    start = after.replace(microsecond=0)
    seconds = range(int((until - start).total_seconds()) + 1)
    return start + timedelta(
        seconds=bisect_left(seconds, True, key=lambda s: offset_at(zone, start + timedelta(seconds=s)) != before)
    )


def offset_at(zone: tzinfo, at: datetime) -> timedelta:
    """Return how far the zone's clocks are ahead of UTC at an instant."""
    return at.astimezone(zone).utcoffset() or timedelta(0)


@cache
def _zone_names() -> frozenset[str]:
    # Neither is a place: one is this machine's setting, the other means that there is none.
    return frozenset(available_timezones() - {"localtime", "Factory"})


@cache
def _by_lower_case() -> dict[str, str]:
    return {name.lower(): name for name in _zone_names()}


def _nearest(name: str) -> str | None:
    """Return the known zone with the most similar name; the city alone is enough."""
    spellings = {known.rpartition("/")[2].lower(): known for known in sorted(_zone_names(), reverse=True)}
    spellings |= {known.lower(): known for known in _zone_names()}
    wanted = name[:80].strip().lower().replace(" ", "_")
    matches = difflib.get_close_matches(wanted, spellings, n=1, cutoff=0.75)
    return spellings[matches[0]] if matches else None
