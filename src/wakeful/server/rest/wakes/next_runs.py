"""Routes for the next run of an agent."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import AwareDatetime, Field, Strict

from wakeful.domain.doors.next_run import NextRunRequest
from wakeful.domain.types import OnMiss, Priority, ScheduledBy, Wake, WakeStatus
from wakeful.server.auth import Planner, Reader
from wakeful.server.rest.runs.runs import RunShape
from wakeful.server.rest.shapes import CameIn, Done, PathId, Shape, Text, body_of
from wakeful.server.rest.wakes.wakes import BookingShape, IsPaused
from wakeful.server.routes import DoorRoute
from wakeful.server.services import Services, ServicesDep

router = APIRouter(route_class=DoorRoute, tags=["next runs"])

ViewName = Annotated[Text, Field(max_length=200)]


class NewNextRun(body_of(NextRunRequest)):
    """A next run to book: at a time with its zone, a number of seconds from now, or `when` as text."""

    context_views: Annotated[tuple[ViewName, ...], Strict(strict=False), Field(max_length=20)] = ()  # JSON has lists


class NextRunShape(CameIn):
    """The pending next run of an agent, if there is one."""

    id: str
    agent_id: str
    scheduled_at: AwareDatetime = Field(validation_alias="nominal_at")
    attempt_at: AwareDatetime  # later than scheduled_at while something holds it
    held_by: str | None
    is_paused: IsPaused
    booking: BookingShape | None
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
    """The next run, whether its time was moved, and how many runs the agent may still book today."""

    next_run: NextRunShape
    told: str
    clamped: bool
    clamp_reasons: list[str]
    requested_at: AwareDatetime
    remaining_budget_today: int


@router.get("/agents/{agent_id}/next-run")
async def get_next_run(caller: Reader, services: ServicesDep, agent_id: PathId) -> NextRunAnswer:
    """Show the pending next run of an agent."""
    wake = await services.next_runs.pending(agent_id, caller.user.id)
    return NextRunAnswer(next_run=None if wake is None else await _to_body(services, wake))


@router.put("/agents/{agent_id}/next-run")
async def book_next_run(caller: Planner, services: ServicesDep, agent_id: PathId, asked: NewNextRun) -> NextRunBooked:
    """Book an agent's next run and replace the pending one. People are limited only by the agent's horizon."""
    booked = await services.next_runs.book(asked.to_request(NextRunRequest), agent_id, caller.user.id, caller.via)
    return NextRunBooked(
        next_run=await _to_body(services, booked.wake),
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
    """Run the next run now, even if it is paused; it is over then."""
    return RunShape.model_validate(await services.next_runs.run_now(agent_id, caller.user.id, caller.via))


async def _to_body(services: Services, wake: Wake) -> NextRunShape:
    return NextRunShape.from_fields(wake, is_paused=wake.id in await services.pauses.holding([wake]))
