"""Routes for wakes, recalls, schedules and next runs."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, ConfigDict, Field, Strict, StringConstraints

from wakeful.core.addresses import MAX_URL
from wakeful.core.errors import Invalid
from wakeful.core.types import OnMiss, Priority, RunNote, RunStatus, ScheduledBy, Wake, WakeStatus
from wakeful.http.auth import Planner, Reader
from wakeful.http.routes import DoorRoute
from wakeful.http.services import Need, Services, ServicesDep
from wakeful.http.shapes import (
    CAME_IN,
    INTERNAL,
    BookingShape,
    CameIn,
    Done,
    Id,
    IsPaused,
    Most,
    Page,
    PathId,
    RecallShape,
    Shape,
    Sparse,
    Text,
    body_of,
    next_page,
    read_page,
    shape_of,
)
from wakeful.runs.rest import RunShape
from wakeful.timing.explain import Step
from wakeful.timing.next_run_request import NextRunRequest
from wakeful.timing.recall_request import RecallRequest
from wakeful.timing.schedule_request import Schedule, ScheduleRequest, ScheduleStatus, wake_id_of
from wakeful.wakes.next_runs import NextRuns
from wakeful.wakes.recalls import Recalls
from wakeful.wakes.schedules import Schedules
from wakeful.wakes.service import WakeService

# ── Wakes of every kind, by id ────────────────────────────────────────────────────────────────────────────────────────


router = APIRouter(route_class=DoorRoute, tags=["wakes"])

NULLABLE = frozenset({"until", "max_runs", "ping_url"})  # in a change, null removes these


class WakeShape(CameIn, shape_of(Wake, without=INTERNAL | CAME_IN, every="interval_seconds")):
    """A promise to wake an agent."""

    booking: BookingShape | None = Field(description="Null: version 0.1 booked it.")
    is_paused: IsPaused
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
    ping_url: Annotated[str, StringConstraints(max_length=MAX_URL)] | None = Field(
        None,
        description="An address in the form of healthchecks.io. It is requested at the start of each run (`/start`) "
        "and at its end (`/0`, or `/1` with a reason code). It is a secret: only `ping_to` is shown. Null removes it.",
    )


class WakeList(Sparse):
    wakes: list[WakeWithLastRun]
    next: str | None = None


class DecisionShape(shape_of(Step, without=("wake_id",))):
    """One decision about a planned time of a wake; `text` says it in a sentence, with instants in ISO 8601."""


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
    return WakeList(
        wakes=await _with_last_runs(services, found),
        next=next_page(found, most, lambda wake: (wake.nominal_at, wake.id)),
    )


@router.get("/wakes/{wake_id}")
async def get_wake(caller: Reader, services: ServicesDep, wake_id: PathId) -> WakeWithLastRun:
    """Show a wake."""
    wake = await services.wakes.get(wake_id, caller.user.id)
    return (await _with_last_runs(services, [wake]))[0]


@router.patch("/wakes/{wake_id}")
async def change_wake(caller: Planner, services: ServicesDep, wake_id: PathId, asked: WakeChange) -> WakeShape:
    """Change a pending wake of any kind; a new time or rule starts over."""
    changes = asked.to_changes(NULLABLE)
    muted = changes.pop("muted", None)
    has_ping, ping_url = "ping_url" in changes, changes.pop("ping_url", None)
    wake = await services.wakes.get(wake_id, caller.user.id)
    if has_ping:  # first: an address that is refused changes nothing
        wake = await services.pings.set_address(wake_id, caller.user.id, ping_url)
    if changes:
        wake = await services.wakes.edit(wake_id, caller.user.id, changes)
    if muted is not None:
        wake = await services.wakes.mute(wake_id, caller.user.id, muted)
    return await _to_body(services, wake)


@router.delete("/wakes/{wake_id}")
async def cancel_wake(caller: Planner, wakes: Need[WakeService], wake_id: PathId) -> Done:
    """Cancel a pending or queued wake; it is kept as cancelled."""
    await wakes.cancel(wake_id, caller.user.id)
    return Done()


@router.post("/wakes/{wake_id}/skip")
async def skip_wake(caller: Planner, services: ServicesDep, wake_id: PathId) -> WakeShape:
    """Skip the next time of a recurring wake."""
    return await _to_body(services, await services.wakes.skip(wake_id, caller.user.id))


@router.post("/wakes/{wake_id}/run-now", status_code=202)
async def run_wake_now(caller: Planner, wakes: Need[WakeService], wake_id: PathId) -> RunShape:
    """Run a wake now, even if it is paused. A wake that fires once is over then; a recurring one keeps its times."""
    return RunShape.model_validate(await wakes.run_now(wake_id, caller.user.id, caller.via))


@router.get("/wakes/{wake_id}/why")
async def why(caller: Reader, wakes: Need[WakeService], wake_id: PathId) -> Why:
    """Show what was decided about each planned time of a wake, and why."""
    decisions = await wakes.why(wake_id, caller.user.id)
    return Why(decisions=[DecisionShape.model_validate(each) for each in decisions])


async def recall_to_body(services: Services, wake: Wake) -> RecallShape:
    """Return a recall as the API shows it."""
    return RecallShape.from_fields(wake, is_paused=wake.id in await services.pauses.holding([wake]))


async def _to_body(services: Services, wake: Wake) -> WakeShape:
    return WakeShape.from_fields(wake, is_paused=wake.id in await services.pauses.holding([wake]))


async def _with_last_runs(services: Services, found: Sequence[Wake]) -> list[WakeWithLastRun]:
    paused, last_runs = await services.pauses.holding(found), await services.wakes.last_runs(found)
    return [
        WakeWithLastRun.from_fields(wake, is_paused=wake.id in paused, last_run=last_runs.get(wake.id))
        for wake in found
    ]


# ── The recall of a session ───────────────────────────────────────────────────────────────────────────────────────────


recalls_router = APIRouter(route_class=DoorRoute, tags=["recalls"])


class NewRecall(body_of(RecallRequest)):
    """A recall to book."""


class RecallChange(body_of(RecallRequest, without=("call_type", "timezone_offset"), is_change=True)):
    """Fields that are left out stay unchanged."""


class RecallAnswer(Shape):
    recall: RecallShape | None


class RecallBooked(Sparse):
    """The recall, its time as text, and a warning if its text is not a task for the agent."""

    recall: RecallShape
    told: str
    warning: str | None = None


@recalls_router.get("/sessions/{session_id}/recall")
async def get_recall(caller: Reader, services: ServicesDep, session_id: PathId) -> RecallAnswer:
    """Show the pending recall of a session."""
    wake = await services.recalls.pending(session_id, caller.user.id)
    return RecallAnswer(recall=None if wake is None else await recall_to_body(services, wake))


@recalls_router.post("/sessions/{session_id}/recall", status_code=201)
async def book_recall(caller: Planner, services: ServicesDep, session_id: PathId, asked: NewRecall) -> RecallBooked:
    """Book a recall; a session can have one."""
    booked = await services.recalls.book(asked.to_request(RecallRequest), session_id, caller.user.id, caller.via)
    recall = await recall_to_body(services, booked.wake)
    return RecallBooked(recall=recall, told=booked.told, warning=booked.warning)


@recalls_router.patch("/sessions/{session_id}/recall")
async def change_recall(
    caller: Planner, services: ServicesDep, session_id: PathId, asked: RecallChange
) -> RecallAnswer:
    """Change the pending recall; a new time or rule starts over."""
    wake = await services.recalls.edit(session_id, caller.user.id, asked.to_changes(NULLABLE))
    return RecallAnswer(recall=await recall_to_body(services, wake))


@recalls_router.delete("/sessions/{session_id}/recall")
async def cancel_recall(caller: Planner, recalls: Need[Recalls], session_id: PathId) -> Done:
    """Cancel the pending recall, if there is one; it is kept as cancelled."""
    await recalls.cancel(session_id, caller.user.id)
    return Done()


@recalls_router.post("/sessions/{session_id}/recall/skip")
async def skip_recall(caller: Planner, recalls: Need[Recalls], session_id: PathId) -> Done:
    """Skip the next time of a recurring recall."""
    await recalls.skip(session_id, caller.user.id)
    return Done()


@recalls_router.post("/sessions/{session_id}/recall/run-now", status_code=202)
async def run_recall_now(caller: Planner, recalls: Need[Recalls], session_id: PathId) -> RunShape:
    """Run the recall now. A recall that fires once is over then; a recurring one keeps its times."""
    return RunShape.model_validate(await recalls.run_now(session_id, caller.user.id, caller.via))


# ── Schedules of a session ────────────────────────────────────────────────────────────────────────────────────────────


schedules_router = APIRouter(route_class=DoorRoute, tags=["schedules"])

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


@schedules_router.get("/sessions/{session_id}/schedules", response_model_exclude_unset=True)
async def list_schedules(
    caller: Reader,
    schedules: Need[Schedules],
    session_id: PathId,
    status: ScheduleStatus | None = None,
    fields: Fields = None,
    most: Most = 50,
    page: Page = None,
) -> ChosenSchedules:
    """List the schedules of a session, ended ones included, the newest first."""
    chosen = _read_fields(fields)
    found = await schedules.listed(session_id, caller.user.id, status=status, before=read_page(page), most=most)
    following = next_page(found, most, lambda schedule: (schedule.created_at, wake_id_of(schedule.id)))
    shown = ChosenSchedules(schedules=[_choose(schedule, chosen) for schedule in found])
    return shown if following is None else shown.model_copy(update={"next": following})


@schedules_router.post("/sessions/{session_id}/schedules", status_code=201)
async def book_schedule(
    caller: Planner, schedules: Need[Schedules], session_id: PathId, asked: NewSchedule
) -> ScheduleBooked:
    """Book a message to a session, or a new session, once and at most a day ahead."""
    booked = await schedules.book(asked.to_request(ScheduleRequest), session_id, caller.user.id, caller.via)
    shape = ScheduleShape.model_validate(booked.schedule)
    return ScheduleBooked(schedule=shape, told=booked.told, warning=booked.warning)


@schedules_router.get("/schedules/{schedule_id}", response_model_exclude_unset=True)
async def get_schedule(
    caller: Reader, schedules: Need[Schedules], schedule_id: PathId, fields: Fields = None
) -> ChosenFields:
    """Show a schedule, live or ended; the id may omit `sch-`."""
    chosen = _read_fields(fields)
    return _choose(await schedules.get(schedule_id, caller.user.id), chosen)


@schedules_router.delete("/schedules/{schedule_id}")
async def cancel_schedule(caller: Planner, schedules: Need[Schedules], schedule_id: PathId) -> Done:
    """Cancel a pending or queued schedule; it is kept as cancelled."""
    await schedules.cancel(schedule_id, caller.user.id)
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


# ── The next run of an agent ──────────────────────────────────────────────────────────────────────────────────────────


next_runs_router = APIRouter(route_class=DoorRoute, tags=["next runs"])

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


@next_runs_router.get("/agents/{agent_id}/next-run")
async def get_next_run(caller: Reader, services: ServicesDep, agent_id: PathId) -> NextRunAnswer:
    """Show the pending next run of an agent."""
    wake = await services.next_runs.pending(agent_id, caller.user.id)
    return NextRunAnswer(next_run=None if wake is None else await _to_next_run(services, wake))


@next_runs_router.put("/agents/{agent_id}/next-run")
async def book_next_run(caller: Planner, services: ServicesDep, agent_id: PathId, asked: NewNextRun) -> NextRunBooked:
    """Book an agent's next run and replace the pending one. People are limited only by the agent's horizon."""
    booked = await services.next_runs.book(asked.to_request(NextRunRequest), agent_id, caller.user.id, caller.via)
    return NextRunBooked(
        next_run=await _to_next_run(services, booked.wake),
        told=booked.told,
        clamped=booked.clamped.clamped,
        clamp_reasons=list(booked.clamped.reasons),
        requested_at=booked.clamped.requested,
        remaining_budget_today=booked.clamped.remaining_today,
    )


@next_runs_router.delete("/agents/{agent_id}/next-run")
async def cancel_next_run(caller: Planner, next_runs: Need[NextRuns], agent_id: PathId) -> Done:
    """Cancel the pending next run, also one that the agent booked; succeeds if there is none."""
    await next_runs.cancel(agent_id, caller.user.id)
    return Done()


@next_runs_router.post("/agents/{agent_id}/next-run/run-now", status_code=202)
async def run_next_run_now(caller: Planner, next_runs: Need[NextRuns], agent_id: PathId) -> RunShape:
    """Run the next run now, even if it is paused; it is over then."""
    return RunShape.model_validate(await next_runs.run_now(agent_id, caller.user.id, caller.via))


async def _to_next_run(services: Services, wake: Wake) -> NextRunShape:
    return NextRunShape.from_fields(wake, is_paused=wake.id in await services.pauses.holding([wake]))
