"""Routes for tool calls that need approval."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import AfterValidator, Field

from wakeful.domain.people.accounts import check_scope
from wakeful.domain.runs.approvals import Allowance, Approval
from wakeful.domain.runs.call_words import ShownArgument
from wakeful.server.auth import Admin, Chatter, Reader
from wakeful.server.rest.shapes import Done, PathId, RequestBody, Shape, Sparse, check_text, shape_of
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep

router = APIRouter(route_class=DoorRoute, tags=["runs"])

# Providers choose these ids, so they can have almost any form.
CallId = Annotated[str, Path(min_length=1, max_length=500), AfterValidator(check_text)]


class ShownArgumentShape(shape_of(ShownArgument)):
    """An argument as text, with blanks and invisible characters written out. A long one has a `middle`, which may be
    folded if its length is shown."""


class ApprovalShape(shape_of(Approval, without=("user_id",))):
    """A tool call that needs approval. `sentence` says what it would do, with long values shortened; `shown` has every
    argument, to be on the screen before a person can approve."""

    shown: list[ShownArgumentShape]


class ApprovalList(Shape):
    approvals: list[ApprovalShape]


class Answer(RequestBody):
    approve: bool
    note: Annotated[str, Field(max_length=2_000), AfterValidator(check_text)] | None = None  # for the agent to read
    always: bool = Field(
        False,
        description="Also let this agent call this tool in this session from now on, without asking; scheduled runs "
        "there too. Needs the scope `admin`, as the agent's `ask_before` does.",
    )


class ApprovalAnswered(Sparse):
    """The result; `run_id` is the new run, if the call was one of a headless run."""

    ok: bool = True
    run_id: str | None = None


class AllowanceShape(shape_of(Allowance, without=("user_id", "agent_id"))):
    """A tool that an agent may call in a session without asking."""

    session_title: str


class AllowanceList(Shape):
    allowances: list[AllowanceShape]


@router.get("/approvals")
async def list_waiting(caller: Reader, services: ServicesDep) -> ApprovalList:
    """List the tool calls that wait for the caller's answer now, of all sessions."""
    found = await services.approvals.waiting(caller.user.id)
    return ApprovalList(approvals=[ApprovalShape.model_validate(each) for each in found])


@router.get("/agents/{agent_id}/allowances")
async def list_allowances(caller: Reader, services: ServicesDep, agent_id: PathId) -> AllowanceList:
    """List the tools that an agent may call without asking, and in which session."""
    found = await services.approvals.allowances(agent_id, caller.user.id)
    return AllowanceList(allowances=[AllowanceShape.from_fields(each, session_title=title) for each, title in found])


@router.delete("/agents/{agent_id}/allowances/{allowance_id}")
async def revoke_allowance(caller: Admin, services: ServicesDep, agent_id: PathId, allowance_id: PathId) -> Done:
    """Ask again before each call of a tool that was allowed in a session."""
    await services.approvals.revoke(allowance_id, agent_id, caller.user.id)
    return Done()


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
    if asked.always:
        check_scope(caller, "admin")
    again = await services.approvals.answer(
        run_id,
        call_id,
        caller.user.id,
        approve=asked.approve,
        note=asked.note,
        always=asked.always,
        via=caller.via,
    )
    return ApprovalAnswered(run_id=None if again is None else again.id)
