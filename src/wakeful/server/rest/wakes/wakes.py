"""Routes for wakes of every kind, by id."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BeforeValidator, Field, StringConstraints

from wakeful.domain.doors.recall import RecallRequest
from wakeful.domain.frames import recall_status
from wakeful.domain.pings import MAX_URL
from wakeful.domain.types import RunNote, RunStatus, ScheduledBy, Wake, WakeStatus
from wakeful.domain.wakes.explain import Step
from wakeful.server.auth import Planner, Reader
from wakeful.server.rest.pages import Most, Page, next_page, read_page
from wakeful.server.rest.runs.runs import RunShape
from wakeful.server.rest.shapes import CAME_IN, CameIn, Done, Id, PathId, Shape, Sparse, Text, body_of, shape_of
from wakeful.server.routes import DoorRoute
from wakeful.server.services import Services, ServicesDep

router = APIRouter(route_class=DoorRoute, tags=["wakes"])

NULLABLE = frozenset({"until", "max_runs", "ping_url"})  # in a change, null removes these

# The scheduler's own fields of a wake; every other one is shown.
_INTERNAL = frozenset({"user_id", "slot", "wall_clock", "first_due_at", "is_missed"}) | frozenset(
    {"ephemeral", "deferrals", "failures", "runs_started", "seen_at", "traceparent", "version"}
)
_NOT_OF_RECALLS = frozenset(
    (
        "kind",
        "agent_id",
        "context_views",
        "session_config",
        "tools",
        "delivery_phase",
        "created_session_id",
        "muted",
        "ping_to",
    )
)


class BookingShape(Shape):
    """The time that was requested, and the one that was booked for it."""

    requested: str = Field(description="As it was written.")
    requested_at: AwareDatetime | None = Field(description="The instant that it means.")
    zone: str | None = Field(None, description="The zone in which it was read.")
    moved_by: list[str] = Field(description="Why another time was booked, in order.")
    final: AwareDatetime = Field(description="The booked time. A recurring wake has moved on since.")
    changed_by: ScheduledBy | None = Field(None, description="Who changed the time since it was booked; null: nobody.")


IsPaused = Annotated[bool, Field(description="Whether a pause holds it at its planned time.")]


class WakeShape(CameIn, shape_of(Wake, without=_INTERNAL | CAME_IN, every="interval_seconds")):
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


class RecallShape(
    CameIn,
    shape_of(
        Wake,
        without=_INTERNAL | _NOT_OF_RECALLS | CAME_IN,
        every="interval_seconds",
        comment="internal_comment",
        instructions="additional_context_message",
    ),
):
    """A recall under the names of its door."""

    session_id: str
    trigger_at: AwareDatetime = Field(validation_alias="nominal_at")
    status: Annotated[str, BeforeValidator(recall_status)]
    booking: BookingShape | None
    is_paused: IsPaused


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
async def cancel_wake(caller: Planner, services: ServicesDep, wake_id: PathId) -> Done:
    """Cancel a pending or queued wake; it is kept as cancelled."""
    await services.wakes.cancel(wake_id, caller.user.id)
    return Done()


@router.post("/wakes/{wake_id}/skip")
async def skip_wake(caller: Planner, services: ServicesDep, wake_id: PathId) -> WakeShape:
    """Skip the next time of a recurring wake."""
    return await _to_body(services, await services.wakes.skip(wake_id, caller.user.id))


@router.post("/wakes/{wake_id}/run-now", status_code=202)
async def run_wake_now(caller: Planner, services: ServicesDep, wake_id: PathId) -> RunShape:
    """Run a wake now, even if it is paused. A wake that fires once is over then; a recurring one keeps its times."""
    return RunShape.model_validate(await services.wakes.run_now(wake_id, caller.user.id, caller.via))


@router.get("/wakes/{wake_id}/why")
async def why(caller: Reader, services: ServicesDep, wake_id: PathId) -> Why:
    """Show what was decided about each planned time of a wake, and why."""
    decisions = await services.wakes.why(wake_id, caller.user.id)
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
