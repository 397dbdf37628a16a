"""The recall of a session."""

from fastapi import APIRouter

from wakeful.domain.doors.recall import RecallRequest
from wakeful.domain.types import CallType, OnMiss, Priority
from wakeful.server.auth import Planner, Reader
from wakeful.server.rest.runs.runs import RunShape
from wakeful.server.rest.shapes import Done, PathId, RequestBody, Shape, Sparse, Text
from wakeful.server.rest.wakes.wakes import RecallShape, Runs, Seconds, When, recall_to_body
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep

router = APIRouter(route_class=DoorRoute, tags=["recalls"])


class NewRecall(RequestBody):
    """A recall to book."""

    call_type: CallType
    additional_context_message: Text
    when: When | None = None
    timezone: When | None = None
    timezone_offset: When | None = None
    interval_seconds: Seconds | None = None
    cron: When | None = None
    until: When | None = None
    max_runs: Runs | None = None
    on_miss: OnMiss | None = None
    priority: Priority = "normal"
    internal_comment: Text = ""


class RecallChange(RequestBody):
    """Fields that are left out stay unchanged."""

    additional_context_message: Text | None = None
    internal_comment: Text | None = None
    when: When | None = None
    timezone: When | None = None
    interval_seconds: Seconds | None = None
    cron: When | None = None
    until: When | None = None
    max_runs: Runs | None = None
    on_miss: OnMiss | None = None
    priority: Priority | None = None


class RecallAnswer(Shape):
    recall: RecallShape | None


class RecallBooked(Sparse):
    """The recall, when it will be, and a warning if its text names nothing to work with."""

    recall: RecallShape
    told: str
    warning: str | None = None


@router.get("/sessions/{session_id}/recall")
async def get_recall(caller: Reader, services: ServicesDep, session_id: PathId) -> RecallAnswer:
    """Show the recall that waits in a session."""
    wake = await services.recalls.pending(session_id, caller.user.id)
    return RecallAnswer(recall=None if wake is None else recall_to_body(wake))


@router.post("/sessions/{session_id}/recall", status_code=201)
async def book_recall(caller: Planner, services: ServicesDep, session_id: PathId, asked: NewRecall) -> RecallBooked:
    """Book a recall; one can wait in a session."""
    request = RecallRequest(
        call_type=asked.call_type,
        instructions=asked.additional_context_message,
        when=asked.when,
        timezone=asked.timezone,
        timezone_offset=asked.timezone_offset,
        interval_seconds=asked.interval_seconds,
        cron=asked.cron,
        until=asked.until,
        max_runs=asked.max_runs,
        on_miss=asked.on_miss,
        priority=asked.priority,
        comment=asked.internal_comment,
    )
    booked = await services.recalls.book(request, session_id, caller.user.id)
    return RecallBooked(recall=recall_to_body(booked.wake), told=booked.told, warning=booked.warning)


@router.patch("/sessions/{session_id}/recall")
async def change_recall(
    caller: Planner, services: ServicesDep, session_id: PathId, asked: RecallChange
) -> RecallAnswer:
    """Change the recall that waits; a new time or rule starts afresh."""
    given = {name: getattr(asked, name) for name in asked.model_fields_set}
    changes = {name: value for name, value in given.items() if value is not None or name in ("until", "max_runs")}
    return RecallAnswer(recall=recall_to_body(await services.recalls.edit(session_id, caller.user.id, changes)))


@router.delete("/sessions/{session_id}/recall")
async def cancel_recall(caller: Planner, services: ServicesDep, session_id: PathId) -> Done:
    """Cancel the recall that waits, if there is one; its row stays as cancelled."""
    await services.recalls.cancel(session_id, caller.user.id)
    return Done()


@router.post("/sessions/{session_id}/recall/skip")
async def skip_recall(caller: Planner, services: ServicesDep, session_id: PathId) -> Done:
    """Leave out the next time of a recurring recall."""
    await services.recalls.skip(session_id, caller.user.id)
    return Done()


@router.post("/sessions/{session_id}/recall/run-now", status_code=202)
async def run_recall_now(caller: Planner, services: ServicesDep, session_id: PathId) -> RunShape:
    """Run the recall at once: one that fires once is used up by it, a recurring one keeps its times."""
    return RunShape.model_validate(await services.recalls.run_now(session_id, caller.user.id))
