"""Routes for the recall of a session."""

from fastapi import APIRouter

from wakeful.domain.doors.recall import RecallRequest
from wakeful.server.auth import Planner, Reader
from wakeful.server.rest.runs.runs import RunShape
from wakeful.server.rest.shapes import Done, PathId, Shape, Sparse, body_of
from wakeful.server.rest.wakes.wakes import NULLABLE, RecallShape, recall_to_body
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep

router = APIRouter(route_class=DoorRoute, tags=["recalls"])


class NewRecall(body_of(RecallRequest)):
    """A recall to book."""


class RecallChange(body_of(RecallRequest, without=("call_type", "timezone_offset"), is_change=True)):
    """Fields that are left out stay unchanged."""


class RecallAnswer(Shape):
    recall: RecallShape | None


class RecallBooked(Sparse):
    """The recall, its time as text, and a warning if its text is not a task for the agent."""

    recall: RecallShape
    told: str
    warning: str | None = None


@router.get("/sessions/{session_id}/recall")
async def get_recall(caller: Reader, services: ServicesDep, session_id: PathId) -> RecallAnswer:
    """Show the pending recall of a session."""
    wake = await services.recalls.pending(session_id, caller.user.id)
    return RecallAnswer(recall=None if wake is None else await recall_to_body(services, wake))


@router.post("/sessions/{session_id}/recall", status_code=201)
async def book_recall(caller: Planner, services: ServicesDep, session_id: PathId, asked: NewRecall) -> RecallBooked:
    """Book a recall; a session can have one."""
    booked = await services.recalls.book(asked.to_request(RecallRequest), session_id, caller.user.id, caller.via)
    recall = await recall_to_body(services, booked.wake)
    return RecallBooked(recall=recall, told=booked.told, warning=booked.warning)


@router.patch("/sessions/{session_id}/recall")
async def change_recall(
    caller: Planner, services: ServicesDep, session_id: PathId, asked: RecallChange
) -> RecallAnswer:
    """Change the pending recall; a new time or rule starts over."""
    wake = await services.recalls.edit(session_id, caller.user.id, asked.to_changes(NULLABLE))
    return RecallAnswer(recall=await recall_to_body(services, wake))


@router.delete("/sessions/{session_id}/recall")
async def cancel_recall(caller: Planner, services: ServicesDep, session_id: PathId) -> Done:
    """Cancel the pending recall, if there is one; it is kept as cancelled."""
    await services.recalls.cancel(session_id, caller.user.id)
    return Done()


@router.post("/sessions/{session_id}/recall/skip")
async def skip_recall(caller: Planner, services: ServicesDep, session_id: PathId) -> Done:
    """Skip the next time of a recurring recall."""
    await services.recalls.skip(session_id, caller.user.id)
    return Done()


@router.post("/sessions/{session_id}/recall/run-now", status_code=202)
async def run_recall_now(caller: Planner, services: ServicesDep, session_id: PathId) -> RunShape:
    """Run the recall now. A recall that fires once is over then; a recurring one keeps its times."""
    return RunShape.model_validate(await services.recalls.run_now(session_id, caller.user.id, caller.via))
