"""The frames about wakes and runs, and their JSON: one mapping for everything that writes frames."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Protocol

import orjson

from wakeful.core.events import (
    RecallUpdate,
    RunChanged,
    RunUpdate,
    ScheduleUpdate,
    ServerNote,
    SessionFrame,
    UserFrame,
    WakeChanged,
    wire_name,
)
from wakeful.core.labels import SERVER_NOTES
from wakeful.core.types import CallType, Run, ServerNoteCode, Wake, WakeKind, WakeStatus, kind_of

_RECALL_STATUS: Mapping[WakeStatus, str] = {
    "pending": "pending",
    "queued": "pending",
    "running": "fired",
    "fired": "fired",
}  # any other: cancelled


class Recall(Protocol):
    """The part of a recall that never changes."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> WakeKind: ...
    @property
    def session_id(self) -> str | None: ...
    @property
    def call_type(self) -> CallType: ...


def recall_status(status: WakeStatus) -> str:
    """Return the status of a recall as its API shows it."""
    return _RECALL_STATUS.get(status, "cancelled")


def server_note(code: ServerNoteCode) -> ServerNote:
    """Return the frame of a remark of the server."""
    return ServerNote(code=code, text=SERVER_NOTES[code])


def recall_update(recall: Recall, change: WakeChanged) -> RecallUpdate:
    """Return the frame about a change of a recall."""
    assert recall.session_id is not None
    # A recurring recall stays pending while one of its runs executes, also the last one.
    is_pending = change.status == "running" and recall.call_type == "recurring"
    return RecallUpdate(
        session_id=recall.session_id,
        recall_id=recall.id,
        call_type=recall.call_type,
        trigger_at=change.trigger_at,
        status="pending" if is_pending else recall_status(change.status),
        action=change.action,
    )


def wake_fired(wake_id: str, run: Run) -> WakeChanged:
    """Return the change of a wake when its run starts."""
    return WakeChanged(wake_id, "fired", "running", run.nominal_at)


def wake_update(wake: Wake, change: WakeChanged) -> RecallUpdate | ScheduleUpdate:
    """Return the frame about a change of a wake; of the wake itself only fields that never change are used."""
    if kind_of(wake).is_recall and wake.session_id is not None:
        return recall_update(wake, change)
    return ScheduleUpdate(
        wake_id=wake.id,
        kind=wake.kind,
        agent_id=wake.agent_id,
        session_id=wake.session_id,
        trigger_at=change.trigger_at,
        status=change.status,
    )


def run_update(run: Run, change: RunChanged) -> RunUpdate:
    """Return the frame about a change of a run; of the run itself only fields that never change are used."""
    return RunUpdate(
        run_id=run.id,
        agent_id=run.agent_id,
        session_id=run.session_id,
        wake_id=run.wake_id,
        trigger=run.trigger,
        status=change.status,
        reason=change.reason,
    )


def encode(frame: SessionFrame | UserFrame) -> str:
    """Encode a frame as JSON, without the fields that are None."""
    return orjson.dumps(to_wire(frame), option=orjson.OPT_UTC_Z).decode()


def to_wire(frame: SessionFrame | UserFrame, run_id: str | None = None) -> dict[str, Any]:
    """Return a frame's fields under their JSON names, `type` first, without those that are None."""
    written = {key: value for name, key in _fields(type(frame)) if (value := getattr(frame, name)) is not None}
    if run_id is not None:
        written["run_id"] = run_id
    return written


@cache
def _fields(kind: type[Any]) -> tuple[tuple[str, str], ...]:
    names = sorted((field.name for field in fields(kind)), key=lambda name: name != "type")
    return tuple((name, wire_name(name)) for name in names)
