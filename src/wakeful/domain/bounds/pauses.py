"""The length of a pause."""

from datetime import UTC, datetime, timedelta
from typing import Literal

from wakeful.domain.bounds.bounds import next_midnight
from wakeful.domain.errors import Invalid
from wakeful.domain.types import FOREVER

PausePreset = Literal["1h", "4h", "tomorrow", "indefinitely"]

_LENGTHS: dict[PausePreset, timedelta] = {"1h": timedelta(hours=1), "4h": timedelta(hours=4)}


class BadPause(Invalid):
    code = "bad_pause"


def end_of(until: datetime | None, preset: PausePreset | None, now: datetime, zone_name: str) -> datetime:
    """Return when a pause ends: at an instant, as a preset says, or when someone resumes."""
    if until is not None and preset is not None:
        raise BadPause(
            f"Both 'until' ({until.isoformat()}) and 'preset' ({preset!r}) are given. Give one of them.", field="preset"
        )
    if until is not None and until <= now:
        raise BadPause(f"A pause until {until.isoformat()} is over already. Give a later time.", field="until")
    if preset == "tomorrow":
        return next_midnight(now, zone_name)
    if preset in _LENGTHS:
        return now + _LENGTHS[preset]
    return FOREVER if until is None or until >= FOREVER else until.astimezone(UTC)
