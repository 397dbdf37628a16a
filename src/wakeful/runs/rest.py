"""Routes for runs and approvals."""

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Path, Query
from pydantic import AfterValidator, AwareDatetime, Field

from wakeful.core.call_words import ShownArgument
from wakeful.core.identity import check_scope
from wakeful.core.records import Allowance, Approval
from wakeful.core.types import RunNote, RunStatus, ScheduledBy, Trigger, WakeKind
from wakeful.http.auth import Admin, Chatter, Reader
from wakeful.http.routes import DoorRoute
from wakeful.http.services import Need, ServicesDep
from wakeful.http.shapes import (
    CameIn,
    Done,
    Id,
    Most,
    Page,
    PathId,
    RequestBody,
    Shape,
    Sparse,
    StopAnswer,
    ToDollars,
    check_text,
    next_page,
    read_page,
    shape_of,
)
from wakeful.runs.approvals import Approvals
from wakeful.runs.service import RunService

# ── Tool calls that need approval ─────────────────────────────────────────────────────────────────────────────────────


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
async def list_waiting(caller: Reader, approvals: Need[Approvals]) -> ApprovalList:
    """List the tool calls that wait for the caller's answer now, of all sessions."""
    found = await approvals.waiting(caller.user.id)
    return ApprovalList(approvals=[ApprovalShape.model_validate(each) for each in found])


@router.get("/agents/{agent_id}/allowances")
async def list_allowances(caller: Reader, approvals: Need[Approvals], agent_id: PathId) -> AllowanceList:
    """List the tools that an agent may call without asking, and in which session."""
    found = await approvals.allowances(agent_id, caller.user.id)
    return AllowanceList(allowances=[AllowanceShape.from_fields(each, session_title=title) for each, title in found])


@router.delete("/agents/{agent_id}/allowances/{allowance_id}")
async def revoke_allowance(caller: Admin, approvals: Need[Approvals], agent_id: PathId, allowance_id: PathId) -> Done:
    """Ask again before each call of a tool that was allowed in a session."""
    await approvals.revoke(allowance_id, agent_id, caller.user.id)
    return Done()


@router.get("/runs/{run_id}/approvals")
async def list_approvals(caller: Reader, approvals: Need[Approvals], run_id: PathId) -> ApprovalList:
    """List the tool calls of a run that need or needed approval."""
    found = await approvals.of_run(run_id, caller.user.id)
    return ApprovalList(approvals=[ApprovalShape.model_validate(each) for each in found])


@router.post("/runs/{run_id}/approvals/{call_id:path}")
async def answer_approval(
    caller: Chatter, approvals: Need[Approvals], run_id: PathId, call_id: CallId, asked: Answer
) -> ApprovalAnswered:
    """Approve or refuse a tool call. A headless run, which does not wait, is run again with an approved call."""
    if asked.always:
        check_scope(caller, "admin")
    again = await approvals.answer(
        run_id,
        call_id,
        caller.user.id,
        approve=asked.approve,
        note=asked.note,
        always=asked.always,
        via=caller.via,
    )
    return ApprovalAnswered(run_id=None if again is None else again.id)


# ── Runs: their result and usage, stopping, continuing and repeating them ─────────────────────────────────────────────


_MAX_FRAMES = 5_000


class UsageShape(Shape):
    """Usage of a run; cost is null if the price is unknown."""

    model: str
    input_tokens: int
    output_tokens: int
    cost: Annotated[float, ToDollars] | None = Field(validation_alias="cost_micros")
    model_calls: int
    tool_calls: int


class RunShape(CameIn):
    """One execution of an agent, or the record of one that was skipped."""

    id: str
    agent_id: str
    session_id: str | None
    wake_id: str | None
    kind: WakeKind | None
    trigger: Trigger
    scheduled_by: ScheduledBy
    nominal_at: AwareDatetime
    covers: int
    status: RunStatus
    reason: str | None
    note: RunNote | None = Field(
        description="What to know about a run that succeeded: did_nothing (woken, it neither called a tool nor said "
        "anything), empty_answer (it ended without a final answer), call_as_text (its answer contains a tool call as "
        "text, which was not made), unkept_promise (it promised later work and booked nothing), prompt_cut (its "
        "model's provider dropped a part of a request), or the limit that ended it early."
    )
    error: str | None
    attempt: int = Field(
        description="How many starts of the run count: those that reached a model or tool call, and the current one. "
        "After crashes have cut off `max_attempts` of them, the run is interrupted."
    )
    queued_at: AwareDatetime
    started_at: AwareDatetime | None
    finished_at: AwareDatetime | None
    node: str | None = Field(
        description="The name of the node that executed it last; null: none yet, or before it was recorded."
    )


class RunEntry(RunShape):
    about: str = Field(description="What it was about: the label of its wake, or the first words it was given.")


class RunDetail(RunEntry):
    usage: UsageShape | None


class RunWithTexts(RunDetail):
    brief: str = Field(description="The text that it was given: a message, or the instructions of its wake.")
    answer: str = Field(description="The last reply that the agent wrote in it; empty if there is none yet.")


class RunList(Sparse):
    runs: list[RunDetail]
    next: str | None = None


class RunEvents(Sparse):
    """The frames of a run, as its session's socket sent them. Pass `next` as `after` to continue."""

    events: list[dict[str, Any]]
    next: int | None = None


@router.get("/runs")
async def list_runs(
    caller: Reader,
    runs: Need[RunService],
    agent_id: Id | None = None,
    session_id: Id | None = None,
    wake_id: Id | None = None,
    status: RunStatus | None = None,
    most: Most = 50,
    page: Page = None,
) -> RunList:
    """List the caller's runs and what each used, the latest first; with an agent, that agent's history."""
    found = await runs.find(
        caller.user.id,
        agent_id=agent_id,
        session_id=session_id,
        wake_id=wake_id,
        status=status,
        before=read_page(page),
        most=most,
    )
    ids = [run.id for run in found]
    used, about = await runs.usage(ids), await runs.subjects(ids)
    return RunList(
        runs=[RunDetail.from_fields(run, about=about.get(run.id, ""), usage=used.get(run.id)) for run in found],
        next=next_page(found, most, lambda run: (run.queued_at, run.id)),
    )


@router.get("/runs/{run_id}")
async def get_run(caller: Reader, runs: Need[RunService], run_id: PathId) -> RunWithTexts:
    """Show a run: what it was given, what it answered, and what it used."""
    run = await runs.get(run_id, caller.user.id)
    used, about = await runs.usage([run_id]), await runs.subjects([run_id])
    texts = await runs.texts(run)
    return RunWithTexts.from_fields(
        run, about=about.get(run_id, ""), usage=used.get(run_id), brief=texts.brief, answer=texts.answer
    )


@router.get("/runs/{run_id}/events")
async def get_run_events(
    caller: Reader,
    services: ServicesDep,
    run_id: PathId,
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
) -> RunEvents:
    """List the frames of a run, from its start or after a sequence number."""
    run = await services.runs.get(run_id, caller.user.id)
    frames = await services.stream.of_run(run, after, _MAX_FRAMES)
    return RunEvents(
        events=[orjson.loads(frame.text) for frame in frames],
        next=frames[-1].seq if len(frames) >= _MAX_FRAMES else None,
    )


@router.post("/runs/{run_id}/stop")
async def stop_run(caller: Chatter, runs: Need[RunService], run_id: PathId) -> StopAnswer:
    """Ask a run to stop; it ends within two seconds, or when another node takes over from one that does not respond."""
    return StopAnswer.of(await runs.stop(run_id, caller.user.id))


@router.post("/runs/{run_id}/continue", status_code=202)
async def continue_run(caller: Chatter, runs: Need[RunService], run_id: PathId) -> RunShape:
    """Continue a run that was interrupted, failed or was stopped, from its last saved step."""
    return RunShape.model_validate(await runs.go_on(run_id, caller.user.id))


@router.post("/runs/{run_id}/again", status_code=202)
async def run_again(caller: Chatter, runs: Need[RunService], run_id: PathId) -> RunShape:
    """Run the wake of a run once more; the wake keeps its times."""
    return RunShape.model_validate(await runs.again(run_id, caller.user.id, caller.via))
