"""Routes for the agenda: past and future runs."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from wakeful.domain.doors.recall import MAX_RUNS, MAX_SECONDS, RecallRequest
from wakeful.domain.wakes.agenda import Planned
from wakeful.server.auth import Reader
from wakeful.server.rest.runs.runs import RunShape
from wakeful.server.rest.shapes import Id, Shape, shape_of
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep

router = APIRouter(route_class=DoorRoute, tags=["agenda"])

Words = Annotated[str, Query(max_length=200)]


class PlannedShape(shape_of(Planned)):
    """A future run. If `at` is later than `nominal_at`, `reason` says why."""


class AgendaShape(Shape):
    ran: list[RunShape]
    planned: list[PlannedShape]


class TimeShape(shape_of(Planned, without=("wake_id", "agent_id", "session_id", "kind", "comment"))):
    """One time of a recall that is not booked yet."""


class Preview(Shape):
    times: list[TimeShape]


@router.get("/agenda")
async def get_agenda(
    caller: Reader,
    services: ServicesDep,
    start: Annotated[AwareDatetime | None, Query(alias="from")] = None,
    end: Annotated[AwareDatetime | None, Query(alias="to")] = None,
) -> AgendaShape:
    """List past and future runs: recurrence is expanded, pauses and bounds are applied, and moves have a reason."""
    found = await services.agenda.between(caller.user.id, start, end)
    return AgendaShape(
        ran=[RunShape.model_validate(run) for run in found.ran],
        planned=[PlannedShape.model_validate(each) for each in found.planned],
    )


@router.get("/wakes/preview")
async def preview(
    caller: Reader,
    services: ServicesDep,
    agent_id: Id,
    when: Words | None = None,
    interval_seconds: Annotated[int, Query(ge=1, le=MAX_SECONDS)] | None = None,
    cron: Words | None = None,
    timezone: Words | None = None,
    until: Words | None = None,
    max_runs: Annotated[int, Query(ge=1, le=MAX_RUNS)] | None = None,
) -> Preview:
    """List the next five times of a rule before it is booked, with the reason if one is moved."""
    recurring = interval_seconds is not None or cron is not None
    request = RecallRequest(
        call_type="recurring" if recurring else "once",
        additional_context_message="(preview)",
        when=when,
        timezone=timezone,
        interval_seconds=interval_seconds,
        cron=cron,
        until=until,
        max_runs=max_runs,
    )
    times = await services.agenda.preview(request, agent_id, caller.user.id)
    return Preview(times=[TimeShape.model_validate(each) for each in times])
