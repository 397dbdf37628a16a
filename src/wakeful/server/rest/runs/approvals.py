"""Routes for tool calls that need approval."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import AfterValidator, Field

from wakeful.domain.runs.approvals import Approval
from wakeful.server.auth import Chatter, Reader
from wakeful.server.rest.shapes import PathId, RequestBody, Shape, Sparse, check_text, shape_of
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep

router = APIRouter(route_class=DoorRoute, tags=["runs"])

# Providers choose these ids, so they can have almost any form.
CallId = Annotated[str, Path(min_length=1, max_length=500), AfterValidator(check_text)]


class ApprovalShape(shape_of(Approval, without=("run_id", "user_id", "session_id"))):
    """A tool call that needs approval."""


class ApprovalList(Shape):
    approvals: list[ApprovalShape]


class Answer(RequestBody):
    approve: bool
    note: Annotated[str, Field(max_length=2_000), AfterValidator(check_text)] | None = None  # for the agent to read


class ApprovalAnswered(Sparse):
    """The result; `run_id` is the new run, if the call was one of a headless run."""

    ok: bool = True
    run_id: str | None = None


@router.get("/runs/{run_id}/approvals")
async def list_approvals(caller: Reader, services: ServicesDep, run_id: PathId) -> ApprovalList:
    """List the tool calls of a run that need or needed approval."""
    found = await services.approvals.of_run(run_id, caller.user.id)
    return ApprovalList(approvals=[ApprovalShape.model_validate(each) for each in found])


@router.post("/runs/{run_id}/approvals/{call_id:path}")
async def answer_approval(
    caller: Chatter, services: ServicesDep, run_id: PathId, call_id: CallId, asked: Answer
) -> ApprovalAnswered:
    """Approve or refuse a tool call. A headless run, which does not wait, is run again with an approved call."""
    again = await services.approvals.answer(run_id, call_id, caller.user.id, approve=asked.approve, note=asked.note)
    return ApprovalAnswered(run_id=None if again is None else again.id)
