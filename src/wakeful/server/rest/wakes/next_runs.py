"""The next run of an agent."""

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import AwareDatetime, Field

from wakeful.domain.doors.next_run import NextRunRequest
from wakeful.domain.types import OnMiss, Priority, ScheduledBy, Wake, WakeStatus
from wakeful.server.auth import Planner, Reader
from wakeful.server.rest.runs.runs import RunShape
from wakeful.server.rest.shapes import Done, PathId, RequestBody, Shape, Text
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep

router = APIRouter(route_class=DoorRoute, tags=["next runs"])

Short = Annotated[Text, Field(max_length=200)]


class NewNextRun(RequestBody):
    """A next run to book: at a time with its zone, a number of seconds from now, or `when` in words."""

    instructions: Text
    scheduled_at: Short | None = None
    in_seconds: Annotated[int, Field(ge=-(2**53), le=2**53)] | None = None
    when: Short | None = None
    timezone: Short | None = None  # of `when`; without it the agent's, then the user's
    context_views: Annotated[Sequence[Short], Field(max_length=20)] = ()
    priority: Literal["normal", "low"] = "normal"
    on_miss: Literal["skip", "run_once", "run_catchup"] | None = None


class NextRunShape(Shape):
    """The pending next run of an agent, if there is one."""

    id: str
    agent_id: str
    scheduled_at: AwareDatetime
    attempt_at: AwareDatetime  # later, while something holds it
    held_by: str | None
    instructions: str
    context_views: list[str]
    priority: Priority
    on_miss: OnMiss
    scheduled_by: ScheduledBy
    booked_by_run: str | None
    status: WakeStatus
    created_at: AwareDatetime
    updated_at: AwareDatetime


class NextRunAnswer(Shape):
    next_run: NextRunShape | None


class NextRunBooked(Shape):
    """The next run, what became of the time that was asked for, and what the agent may still book today."""

    next_run: NextRunShape
    told: str
    clamped: bool
    clamp_reasons: list[str]
    requested_at: AwareDatetime
    remaining_budget_today: int


@router.get("/agents/{agent_id}/next-run")
async def get_next_run(caller: Reader, services: ServicesDep, agent_id: PathId) -> NextRunAnswer:
    """Show the next run that waits for an agent."""
    wake = await services.next_runs.pending(agent_id, caller.user.id)
    return NextRunAnswer(next_run=None if wake is None else _to_body(wake))


@router.put("/agents/{agent_id}/next-run")
async def book_next_run(caller: Planner, services: ServicesDep, agent_id: PathId, asked: NewNextRun) -> NextRunBooked:
    """Book an agent's next run in place of the one that waits; only the present and the horizon bound a person."""
    request = NextRunRequest(
        instructions=asked.instructions,
        scheduled_at=asked.scheduled_at,
        in_seconds=asked.in_seconds,
        when=asked.when,
        timezone=asked.timezone,
        context_views=tuple(asked.context_views),
        priority=asked.priority,
        on_miss=asked.on_miss,
    )
    booked = await services.next_runs.book(request, agent_id, caller.user.id)
    return NextRunBooked(
        next_run=_to_body(booked.wake),
        told=booked.told,
        clamped=booked.clamped.clamped,
        clamp_reasons=list(booked.clamped.reasons),
        requested_at=booked.clamped.requested,
        remaining_budget_today=booked.clamped.remaining_today,
    )


@router.delete("/agents/{agent_id}/next-run")
async def cancel_next_run(caller: Planner, services: ServicesDep, agent_id: PathId) -> Done:
    """Cancel the pending next run, also one that the agent booked; succeeds if there is none."""
    await services.next_runs.cancel(agent_id, caller.user.id)
    return Done()


@router.post("/agents/{agent_id}/next-run/run-now", status_code=202)
async def run_next_run_now(caller: Planner, services: ServicesDep, agent_id: PathId) -> RunShape:
    """Run the next run at once, paused or not; it is used up by it."""
    return RunShape.model_validate(await services.next_runs.run_now(agent_id, caller.user.id))


def _to_body(wake: Wake) -> NextRunShape:
    return NextRunShape(
        id=wake.id,
        agent_id=wake.agent_id,
        scheduled_at=wake.nominal_at,
        attempt_at=wake.attempt_at,
        held_by=wake.held_by,
        instructions=wake.instructions,
        context_views=list(wake.context_views),
        priority=wake.priority,
        on_miss=wake.on_miss,
        scheduled_by=wake.scheduled_by,
        booked_by_run=wake.booked_by_run,
        status=wake.status,
        created_at=wake.created_at,
        updated_at=wake.updated_at,
    )
