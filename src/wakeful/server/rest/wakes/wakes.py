"""Wakes: what will happen, and why something did or did not."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, Field

from wakeful.domain.doors.recall import MAX_RUNS, MAX_SECONDS
from wakeful.domain.frames import recall_status
from wakeful.domain.types import (
    CallType,
    OnMiss,
    Priority,
    Run,
    RunNote,
    RunStatus,
    ScheduledBy,
    Wake,
    WakeKind,
    WakeStatus,
)
from wakeful.server.auth import Planner, Reader
from wakeful.server.rest.pages import Most, Page, next_page, read_page
from wakeful.server.rest.runs.runs import RunShape
from wakeful.server.rest.shapes import Done, Id, PathId, RequestBody, Shape, Sparse, Text
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep

router = APIRouter(route_class=DoorRoute, tags=["wakes"])

When = Annotated[Text, Field(max_length=200)]
Seconds = Annotated[int, Field(ge=1, le=MAX_SECONDS)]
Runs = Annotated[int, Field(ge=1, le=MAX_RUNS)]


class WakeShape(Shape):
    """A promise to wake an agent."""

    id: str
    kind: WakeKind
    agent_id: str
    session_id: str | None
    call_type: CallType
    interval_seconds: int | None
    cron: str | None
    timezone: str | None
    until: AwareDatetime | None
    max_runs: int | None
    nominal_at: AwareDatetime
    attempt_at: AwareDatetime
    held_by: str | None
    comment: str
    instructions: str
    context_views: list[str]
    session_config: dict[str, Any] | None
    priority: Priority
    on_miss: OnMiss
    scheduled_by: ScheduledBy
    booked_by_run: str | None
    tools: list[str] | None = Field(
        description="The tools of the run that booked it; the run it wakes has none besides. Null: no limit."
    )
    status: WakeStatus
    reason: str | None
    error: str | None
    delivery_phase: str | None
    created_session_id: str | None
    muted: bool
    created_at: AwareDatetime
    updated_at: AwareDatetime


class LastRun(Shape):
    """The result of the latest run of a wake."""

    id: str
    status: RunStatus
    reason: str | None
    note: RunNote | None
    finished_at: AwareDatetime


class WakeWithLastRun(WakeShape):
    last_run: LastRun | None


class WakeChange(RequestBody):
    """Fields that are left out stay unchanged. Recurrence is for recalls only."""

    instructions: Text | None = None
    comment: Text | None = None
    when: When | None = None
    timezone: When | None = None
    interval_seconds: Seconds | None = None
    cron: When | None = None
    until: When | None = None
    max_runs: Runs | None = None
    on_miss: OnMiss | None = None
    priority: Priority | None = None
    muted: bool | None = None  # what a muted wake has to tell goes to the inbox and to no channel


class WakeList(Sparse):
    wakes: list[WakeWithLastRun]
    next: str | None = None


class RecallShape(Shape):
    """A recall under the names of its door."""

    id: str
    session_id: str
    call_type: CallType
    trigger_at: AwareDatetime
    interval_seconds: int | None
    internal_comment: str
    additional_context_message: str
    status: str
    reason: str | None
    nominal_at: AwareDatetime
    attempt_at: AwareDatetime
    held_by: str | None
    error: str | None
    cron: str | None
    timezone: str | None
    until: AwareDatetime | None
    max_runs: int | None
    on_miss: OnMiss
    priority: Priority
    scheduled_by: ScheduledBy
    booked_by_run: str | None
    created_at: AwareDatetime
    updated_at: AwareDatetime


class DecisionShape(Shape):
    """One link of the chain of decisions about a wake."""

    nominal_at: AwareDatetime
    at: AwareDatetime
    code: str
    run_id: str | None
    detail: dict[str, Any]


class Why(Shape):
    decisions: list[DecisionShape]


@router.get("/wakes")
async def list_wakes(
    caller: Reader,
    services: ServicesDep,
    agent_id: Id | None = None,
    status: WakeStatus | None = None,
    live: Annotated[bool, Query(description="Only what waits: pending or queued.")] = False,
    most: Most = 50,
    page: Page = None,
) -> WakeList:
    """List the caller's wakes, the soonest first."""
    found = await services.wakes.find(
        caller.user.id, agent_id=agent_id, status=status, is_live=live, after=read_page(page), most=most
    )
    last = found[-1] if found else None
    last_runs = await services.wakes.last_runs(found)
    return WakeList(
        wakes=[_with_last_run(wake, last_runs.get(wake.id)) for wake in found],
        next=next_page(found, most, last and last.nominal_at, last and last.id),
    )


@router.get("/wakes/{wake_id}")
async def get_wake(caller: Reader, services: ServicesDep, wake_id: PathId) -> WakeWithLastRun:
    """Show a wake."""
    wake = await services.wakes.get(wake_id, caller.user.id)
    return _with_last_run(wake, (await services.wakes.last_runs([wake])).get(wake.id))


@router.patch("/wakes/{wake_id}")
async def change_wake(caller: Planner, services: ServicesDep, wake_id: PathId, asked: WakeChange) -> WakeShape:
    """Change a wake that waits, whichever door it was booked at; a new time or rule starts afresh."""
    given = {name: getattr(asked, name) for name in asked.model_fields_set}
    changes = {name: value for name, value in given.items() if value is not None or name in ("until", "max_runs")}
    muted = changes.pop("muted", None)
    wake = await services.wakes.get(wake_id, caller.user.id)
    if changes:
        wake = await services.wakes.edit(wake_id, caller.user.id, changes)
    if muted is not None:
        wake = await services.wakes.mute(wake_id, caller.user.id, muted)
    return wake_to_body(wake)


@router.delete("/wakes/{wake_id}")
async def cancel_wake(caller: Planner, services: ServicesDep, wake_id: PathId) -> Done:
    """Cancel a wake that waits; its row stays as cancelled."""
    await services.wakes.cancel(wake_id, caller.user.id)
    return Done()


@router.post("/wakes/{wake_id}/skip")
async def skip_wake(caller: Planner, services: ServicesDep, wake_id: PathId) -> WakeShape:
    """Leave out the next time of a recurring wake."""
    return wake_to_body(await services.wakes.skip(wake_id, caller.user.id))


@router.post("/wakes/{wake_id}/run-now", status_code=202)
async def run_wake_now(caller: Planner, services: ServicesDep, wake_id: PathId) -> RunShape:
    """Run a wake at once, paused or not: one that fires once is used up by it, a recurring one keeps its times."""
    return RunShape.model_validate(await services.wakes.run_now(wake_id, caller.user.id))


@router.get("/wakes/{wake_id}/why")
async def why(caller: Reader, services: ServicesDep, wake_id: PathId) -> Why:
    """Return what was decided about each planned time of a wake, and for which reason."""
    decisions = await services.wakes.why(wake_id, caller.user.id)
    return Why(
        decisions=[
            DecisionShape(
                nominal_at=each.nominal_at, at=each.at, code=each.code, run_id=each.run_id, detail=dict(each.detail)
            )
            for each in decisions
        ]
    )


def wake_to_body(wake: Wake) -> WakeShape:
    """Show a wake with all its fields."""
    interval = None if wake.every is None else int(wake.every.total_seconds())
    told = {name: getattr(wake, name) for name in WakeShape.model_fields if name != "interval_seconds"}
    return WakeShape(**told, interval_seconds=interval)


def _with_last_run(wake: Wake, run: Run | None) -> WakeWithLastRun:
    last = None if run is None else LastRun.model_validate(run)
    return WakeWithLastRun(**wake_to_body(wake).model_dump(), last_run=last)


def recall_to_body(wake: Wake) -> RecallShape:
    """Show a wake as the recall of its session."""
    assert wake.session_id is not None
    return RecallShape(
        id=wake.id,
        session_id=wake.session_id,
        call_type=wake.call_type,
        trigger_at=wake.nominal_at,
        interval_seconds=None if wake.every is None else int(wake.every.total_seconds()),
        internal_comment=wake.comment,
        additional_context_message=wake.instructions,
        status=recall_status(wake.status),
        reason=wake.reason,
        nominal_at=wake.nominal_at,
        attempt_at=wake.attempt_at,
        held_by=wake.held_by,
        error=wake.error,
        cron=wake.cron,
        timezone=wake.timezone,
        until=wake.until,
        max_runs=wake.max_runs,
        on_miss=wake.on_miss,
        priority=wake.priority,
        scheduled_by=wake.scheduled_by,
        booked_by_run=wake.booked_by_run,
        created_at=wake.created_at,
        updated_at=wake.updated_at,
    )
