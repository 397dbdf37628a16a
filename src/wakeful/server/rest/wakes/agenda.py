"""Routes for the agenda, and for previews of bookings and changes."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, Field

from wakeful.domain.doors.next_run import NextRunRequest
from wakeful.domain.doors.recall import MAX_RUNS, MAX_SECONDS, RecallRequest
from wakeful.domain.wakes.agenda import Planned
from wakeful.server.auth import Reader
from wakeful.server.rest.runs.runs import RunEntry
from wakeful.server.rest.shapes import Id, PathId, Shape, shape_of
from wakeful.server.rest.wakes.wakes import BookingShape
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep
from wakeful.service.wakes.agenda import Preview

router = APIRouter(route_class=DoorRoute, tags=["agenda"])

Words = Annotated[str, Query(max_length=200)]
_NO_TEXT = "(preview)"


class PlannedShape(shape_of(Planned)):
    """A future run. If `at` is later than `nominal_at`, `reason` says why."""


class AgendaShape(Shape):
    ran: list[RunEntry]
    planned: list[PlannedShape]
    held: list[PlannedShape] = Field(
        description="What waits for someone to resume: `at` is when it would run if the pause ended now."
    )


class TimeShape(shape_of(Planned, without=("wake_id", "agent_id", "session_id", "kind", "comment", "about"))):
    """One time of a run that is not booked yet."""


class PreviewShape(Shape):
    """The planned booking. During a pause without an end, `times` is empty and `held` has the times."""

    times: list[TimeShape]
    held: list[TimeShape]
    booking: BookingShape | None


@router.get("/agenda")
async def get_agenda(
    caller: Reader,
    services: ServicesDep,
    start: Annotated[AwareDatetime | None, Query(alias="from")] = None,
    end: Annotated[AwareDatetime | None, Query(alias="to")] = None,
) -> AgendaShape:
    """List past and future runs: recurrence is expanded, pauses and bounds are applied, and moves have a reason."""
    found = await services.agenda.between(caller.user.id, start, end)
    return AgendaShape.from_fields(
        found, ran=[RunEntry.from_fields(run, about=found.subjects.get(run.id, "")) for run in found.ran]
    )


@router.get("/wakes/preview")
async def preview(
    caller: Reader,
    services: ServicesDep,
    agent_id: Id,
    kind: Annotated[Literal["recall", "next_run"], Query(description="What would be booked.")] = "recall",
    when: Words | None = None,
    interval_seconds: Annotated[int, Query(ge=1, le=MAX_SECONDS)] | None = None,
    cron: Words | None = None,
    timezone: Words | None = None,
    until: Words | None = None,
    max_runs: Annotated[int, Query(ge=1, le=MAX_RUNS)] | None = None,
) -> PreviewShape:
    """List the next five times of a booking before it is made, with the reason if one is moved."""
    if kind == "next_run":
        wanted = NextRunRequest(when=when, timezone=timezone, instructions=_NO_TEXT)
        return _to_body(await services.agenda.preview_next_run(wanted, agent_id, caller.user.id))
    recurring = interval_seconds is not None or cron is not None
    request = RecallRequest(
        call_type="recurring" if recurring else "once",
        additional_context_message=_NO_TEXT,
        when=when,
        timezone=timezone,
        interval_seconds=interval_seconds,
        cron=cron,
        until=until,
        max_runs=max_runs,
    )
    return _to_body(await services.agenda.preview(request, agent_id, caller.user.id))


@router.get("/wakes/{wake_id}/preview")
async def preview_change(
    caller: Reader,
    services: ServicesDep,
    wake_id: PathId,
    when: Words | None = None,
    interval_seconds: Annotated[int, Query(ge=1, le=MAX_SECONDS)] | None = None,
    cron: Words | None = None,
    timezone: Words | None = None,
) -> PreviewShape:
    """List the next five times of a pending wake before it is changed."""
    asked = {"when": when, "interval_seconds": interval_seconds, "cron": cron, "timezone": timezone}
    changes = {name: value for name, value in asked.items() if value is not None}
    return _to_body(await services.agenda.preview_edit(wake_id, caller.user.id, changes))


def _to_body(found: Preview) -> PreviewShape:
    return PreviewShape.from_fields(found, booking=found.wake.booking)
