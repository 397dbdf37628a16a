"""Kinds of wakes, as a table of traits. A new kind is a row here, and the door it is booked through."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from wakeful.domain.types import OnMiss, Wake, WakeKind

Landing = Literal["origin", "fresh"]  # the session it was booked in, or a new one for each run
Slot = Literal["session", "agent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Traits of one kind of wake."""

    landing: Landing
    slot: Slot | None = None  # at most one live wake for each session or agent; None: any number
    is_recall: bool = False  # its changes are `recall_update` frames in its session; others are `schedule_update`
    is_schedule: bool = False  # booked through the scheduler door, which limits how many wait in a session
    can_recur: bool = False
    can_defer: bool = False  # deferred while its session is busy; otherwise its run is queued there
    is_bounded: bool = False  # modes, quiet hours, days and the daily cap apply if the agent itself booked it
    on_miss: OnMiss = "run_once"


KINDS: Mapping[WakeKind, Kind] = MappingProxyType(
    {
        "recall": Kind(landing="origin", slot="session", is_recall=True, can_recur=True, can_defer=True),
        "message": Kind(landing="origin", is_schedule=True),
        "session": Kind(landing="fresh", is_schedule=True),
        "next_run": Kind(landing="fresh", slot="agent", is_bounded=True, on_miss="skip"),
    }
)


def kind_of(wake: Wake) -> Kind:
    return KINDS[wake.kind]


def is_schedule(wake: Wake) -> bool:
    """Return whether a wake was booked through the scheduler door."""
    return kind_of(wake).is_schedule


def is_bounded(wake: Wake) -> bool:
    """Return whether modes, quiet hours, days and the daily cap apply: only if the agent itself booked it."""
    return kind_of(wake).is_bounded and wake.scheduled_by == "agent"


def slot_of(kind: WakeKind, agent_id: str, session_id: str | None) -> str | None:
    match KINDS[kind].slot:
        case "session":
            return f"session:{session_id}"
        case "agent":
            return f"agent:{agent_id}"
        case None:
            return None
