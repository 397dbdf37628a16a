"""Routes for wakes of every kind, by id."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BeforeValidator, Field

from wakeful.domain.doors.recall import RecallRequest
from wakeful.domain.frames import recall_status
from wakeful.domain.types import Decision, RunNote, RunStatus, Wake, WakeStatus
from wakeful.server.auth import Planner, Reader
from wakeful.server.rest.pages import Most, Page, next_page, read_page
from wakeful.server.rest.runs.runs import RunShape
from wakeful.server.rest.shapes import Done, Id, PathId, Shape, Sparse, Text, body_of, shape_of
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep

router = APIRouter(route_class=DoorRoute, tags=["wakes"])

NULLABLE = frozenset({"until", "max_runs"})  # in a change, null removes these

# The scheduler's own fields of a wake; every other one is shown.
_INTERNAL = frozenset({"user_id", "slot", "wall_clock", "booking", "first_due_at", "is_missed"}) | frozenset(
    {"ephemeral", "deferrals", "failures", "runs_started", "seen_at", "version"}
)
_NOT_OF_RECALLS = frozenset(
    ("kind", "agent_id", "context_views", "session_config", "tools", "delivery_phase", "created_session_id", "muted")
)


class WakeShape(shape_of(Wake, without=_INTERNAL, every="interval_seconds")):
    """A promise to wake an agent."""

    tools: list[str] | None = Field(
        description="The tools of the run that booked it; its own run has no others. Null: no limit."
    )


class LastRun(Shape):
    """The result of the latest run of a wake."""

    id: str
    status: RunStatus
    reason: str | None
    note: RunNote | None
    finished_at: AwareDatetime


class WakeWithLastRun(WakeShape):
    last_run: LastRun | None


class WakeChange(
    body_of(
        RecallRequest,
        without=("call_type", "timezone_offset", "additional_context_message", "internal_comment"),
        is_change=True,
    )
):
    """Fields that are left out stay unchanged. Recurrence is for recalls only."""

    instructions: Text | None = None
    comment: Text | None = None
    muted: bool | None = None  # its notices go to the inbox, not to the channels


class WakeList(Sparse):
    wakes: list[WakeWithLastRun]
    next: str | None = None


class RecallShape(
    shape_of(
        Wake,
        without=_INTERNAL | _NOT_OF_RECALLS,
        every="interval_seconds",
        comment="internal_comment",
        instructions="additional_context_message",
    )
):
    """A recall under the names of its door."""

    session_id: str
    trigger_at: AwareDatetime = Field(validation_alias="nominal_at")
    status: Annotated[str, BeforeValidator(recall_status)]


class DecisionShape(shape_of(Decision, without=("wake_id",))):
    """One decision about a planned time of a wake."""


class Why(Shape):
    decisions: list[DecisionShape]


@router.get("/wakes")
async def list_wakes(
    caller: Reader,
    services: ServicesDep,
    agent_id: Id | None = None,
    status: WakeStatus | None = None,
    live: Annotated[bool, Query(description="Only pending or queued ones.")] = False,
    most: Most = 50,
    page: Page = None,
) -> WakeList:
    """List the caller's wakes, the soonest first."""
    found = await services.wakes.find(
        caller.user.id, agent_id=agent_id, status=status, is_live=live, after=read_page(page), most=most
    )
    last_runs = await services.wakes.last_runs(found)
    return WakeList(
        wakes=[WakeWithLastRun.from_fields(wake, last_run=last_runs.get(wake.id)) for wake in found],
        next=next_page(found, most, lambda wake: (wake.nominal_at, wake.id)),
    )


@router.get("/wakes/{wake_id}")
async def get_wake(caller: Reader, services: ServicesDep, wake_id: PathId) -> WakeWithLastRun:
    """Show a wake."""
    wake = await services.wakes.get(wake_id, caller.user.id)
    return WakeWithLastRun.from_fields(wake, last_run=(await services.wakes.last_runs([wake])).get(wake.id))


@router.patch("/wakes/{wake_id}")
async def change_wake(caller: Planner, services: ServicesDep, wake_id: PathId, asked: WakeChange) -> WakeShape:
    """Change a pending wake of any kind; a new time or rule starts over."""
    changes = asked.to_changes(NULLABLE)
    muted = changes.pop("muted", None)
    wake = await services.wakes.get(wake_id, caller.user.id)
    if changes:
        wake = await services.wakes.edit(wake_id, caller.user.id, changes)
    if muted is not None:
        wake = await services.wakes.mute(wake_id, caller.user.id, muted)
    return WakeShape.model_validate(wake)


@router.delete("/wakes/{wake_id}")
async def cancel_wake(caller: Planner, services: ServicesDep, wake_id: PathId) -> Done:
    """Cancel a pending or queued wake; it is kept as cancelled."""
    await services.wakes.cancel(wake_id, caller.user.id)
    return Done()


@router.post("/wakes/{wake_id}/skip")
async def skip_wake(caller: Planner, services: ServicesDep, wake_id: PathId) -> WakeShape:
    """Skip the next time of a recurring wake."""
    return WakeShape.model_validate(await services.wakes.skip(wake_id, caller.user.id))


@router.post("/wakes/{wake_id}/run-now", status_code=202)
async def run_wake_now(caller: Planner, services: ServicesDep, wake_id: PathId) -> RunShape:
    """Run a wake now, even if it is paused. A wake that fires once is over then; a recurring one keeps its times."""
    return RunShape.model_validate(await services.wakes.run_now(wake_id, caller.user.id))


@router.get("/wakes/{wake_id}/why")
async def why(caller: Reader, services: ServicesDep, wake_id: PathId) -> Why:
    """Show what was decided about each planned time of a wake, and why."""
    decisions = await services.wakes.why(wake_id, caller.user.id)
    return Why(decisions=[DecisionShape.model_validate(each) for each in decisions])
