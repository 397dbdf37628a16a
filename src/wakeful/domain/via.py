"""The door that a booking or a run came through, and the token or hook behind it. Programs' tokens have a brake."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from wakeful.domain.errors import LimitReached
from wakeful.domain.labels import DOORS
from wakeful.domain.types import Door, Run, Wake
from wakeful.domain.values import replace
from wakeful.domain.wakes.duration import format_duration

HOUR = timedelta(hours=1)
BRAKED: frozenset[Door] = frozenset({"mcp", "v1", "hook"})  # named in token_uses.sql and its indexes too
_UNNAMED: frozenset[Door] = frozenset({"page", "tool"})  # a person, or the agent itself: that is said anyway

Stamped = TypeVar("Stamped", Wake, Run)


@dataclass(frozen=True, slots=True, kw_only=True)
class Via:
    """The door of a request, and the token or hook that it was made with."""

    door: Door
    token_id: str | None = None
    token_name: str | None = None
    key: str | None = None  # the program's own name for a booking: repeated, it books once

    @property
    def is_braked(self) -> bool:
        """Whether what comes this way counts against the brake of its token."""
        return self.door in BRAKED and self.token_id is not None


TOOL = Via(door="tool")


class TokenBraked(LimitReached):
    """A token or a hook has booked or started its runs of this hour."""

    code = "token_brake"

    def __init__(self, via: Via, used: str, free_at: datetime, now: datetime) -> None:
        self.free_at = free_at
        wait = timedelta(seconds=max(1, -(-(free_at - now) // timedelta(seconds=1))))
        what = "hook" if via.door == "hook" else "token"
        super().__init__(
            f"The {what} {via.token_name!r} has {used} within an hour, which is the limit of "
            f"one {what}. The next one is possible in {format_duration(wait)}, at {free_at:%Y-%m-%dT%H:%M:%SZ}.",
            hint="The setting runs_per_token_per_hour changes the limit.",
            seconds=wait // timedelta(seconds=1),
        )


def stamp(one: Stamped, via: Via | None) -> Stamped:
    """Return a wake or a run with the door that it came through; None: the server itself."""
    if via is None:
        return replace(one, door=None, token_id=None, token_name=None)
    return replace(one, door=via.door, token_id=via.token_id, token_name=via.token_name)


def stamp_booked(wake: Wake, run: Run) -> Wake:
    """Return a wake that a run has booked, with the door of agents and what the run has read."""
    return replace(stamp(wake, TOOL), outside_sources=run.outside_sources)


def via_of(one: Wake | Run) -> Via | None:
    """Return how a wake was booked or a run started; None: by the server itself, or before this was recorded."""
    return None if one.door is None else Via(door=one.door, token_id=one.token_id, token_name=one.token_name)


def is_braked(wake: Wake) -> bool:
    """Return whether the runs of a wake count against the brake of the token that booked it."""
    return wake.door in BRAKED and wake.token_id is not None


def describe_door(door: Door | None, token_name: str | None) -> str | None:
    """Return how something came in, as in "through MCP (token “laptop”)"; None if there is nothing to say."""
    if door is None or door in _UNNAMED:
        return None
    named = f" ({'hook' if door == 'hook' else 'token'} “{token_name}”)" if door != "cli" and token_name else ""
    return f"through {DOORS[door]}{named}"
