"""Routes for schedules of a session: one-time messages, and new sessions."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field

from wakeful.domain.doors.schedule import Schedule, ScheduleRequest, ScheduleStatus, wake_id_of
from wakeful.domain.errors import Invalid
from wakeful.server.auth import Planner, Reader
from wakeful.server.rest.pages import Most, Page, next_page, read_page
from wakeful.server.rest.shapes import Done, PathId, Shape, Sparse, body_of, shape_of
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep

router = APIRouter(route_class=DoorRoute, tags=["schedules"])

Fields = Annotated[
    str | None, Query(max_length=1_000, description="Only these fields, separated by commas; without it, all.")
]


class NewSchedule(body_of(ScheduleRequest)):
    """A schedule to book: exactly one of `delay_ms`, `at` and `when`; `session_config` with kind session only."""

    session_config: dict[str, Any] | None = None


class ErrorShape(Shape):
    """Why a schedule failed or was cancelled; `data` has what else is known, such as reason, delivery_phase, run_id."""

    model_config = ConfigDict(from_attributes=True, populate_by_name=True)

    message: str
    kind: str = Field(alias="class")
    data: dict[str, str]


class ScheduleShape(shape_of(Schedule)):
    """Public attributes of a schedule, live or ended."""

    error_summary: ErrorShape | None


class ScheduleBooked(Sparse):
    """The schedule, its time as text, and a warning if some of its configuration has no effect."""

    schedule: ScheduleShape
    told: str
    warning: str | None = None


class ChosenFields(shape_of(Schedule, is_partial=True)):
    """A schedule with the fields that were asked for."""

    error_summary: ErrorShape | None = None


class ChosenSchedules(Shape):
    schedules: list[ChosenFields]
    next: str | None = None


class UnknownField(Invalid):
    code = "unknown_field"

    def __init__(self, name: str) -> None:
        known = ", ".join(ScheduleShape.model_fields)
        super().__init__(f"A schedule has no field {name!r}. It has: {known}.", field="fields")


@router.get("/sessions/{session_id}/schedules", response_model_exclude_unset=True)
async def list_schedules(
    caller: Reader,
    services: ServicesDep,
    session_id: PathId,
    status: ScheduleStatus | None = None,
    fields: Fields = None,
    most: Most = 50,
    page: Page = None,
) -> ChosenSchedules:
    """List the schedules of a session, ended ones included, the newest first."""
    chosen = _read_fields(fields)
    found = await services.schedules.listed(
        session_id, caller.user.id, status=status, before=read_page(page), most=most
    )
    following = next_page(found, most, lambda schedule: (schedule.created_at, wake_id_of(schedule.id)))
    shown = ChosenSchedules(schedules=[_choose(schedule, chosen) for schedule in found])
    return shown if following is None else shown.model_copy(update={"next": following})


@router.post("/sessions/{session_id}/schedules", status_code=201)
async def book_schedule(
    caller: Planner, services: ServicesDep, session_id: PathId, asked: NewSchedule
) -> ScheduleBooked:
    """Book a message to a session, or a new session, once and at most a day ahead."""
    booked = await services.schedules.book(asked.to_request(ScheduleRequest), session_id, caller.user.id, caller.via)
    shape = ScheduleShape.model_validate(booked.schedule)
    return ScheduleBooked(schedule=shape, told=booked.told, warning=booked.warning)


@router.get("/schedules/{schedule_id}", response_model_exclude_unset=True)
async def get_schedule(
    caller: Reader, services: ServicesDep, schedule_id: PathId, fields: Fields = None
) -> ChosenFields:
    """Show a schedule, live or ended; the id may omit `sch-`."""
    chosen = _read_fields(fields)
    return _choose(await services.schedules.get(schedule_id, caller.user.id), chosen)


@router.delete("/schedules/{schedule_id}")
async def cancel_schedule(caller: Planner, services: ServicesDep, schedule_id: PathId) -> Done:
    """Cancel a pending or queued schedule; it is kept as cancelled."""
    await services.schedules.cancel(schedule_id, caller.user.id)
    return Done()


def _read_fields(text: str | None) -> Sequence[str]:
    if text is None:
        return list(ScheduleShape.model_fields)
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in ScheduleShape.model_fields:
            raise UnknownField(name)
    return names


def _choose(schedule: Schedule, fields: Sequence[str]) -> ChosenFields:
    return ChosenFields.model_validate({name: getattr(schedule, name) for name in fields})
