"""The length of a pause, and the wakes that it holds."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

from wakeful.domain.bounds.bounds import next_midnight
from wakeful.domain.errors import Invalid
from wakeful.domain.types import FOREVER, Pause, Wake

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
