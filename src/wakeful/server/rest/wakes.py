"""Wakes: what will happen, and why something did or did not."""

from typing import Any

from fastapi import APIRouter
from pydantic import AwareDatetime

from wakeful.domain.types import CallType, ScheduledBy, Wake, WakeKind, WakeStatus
from wakeful.server.auth import Planner, Reader
from wakeful.server.rest.pages import Most, Page, next_page, read_page
from wakeful.server.rest.shapes import Asked, Id, PathId, Sparse, Told
from wakeful.server.services import ServicesDep

router = APIRouter(tags=["wakes"])

_RECALL_STATUS = {"pending": "pending", "queued": "pending", "running": "fired", "fired": "fired"}


class WakeShape(Told):
    """A promise to wake an agent."""

    id: str
    kind: WakeKind
    agent_id: str
    session_id: str | None
    call_type: CallType
    cron: str | None
    timezone: str
    until: AwareDatetime | None
    max_runs: int | None
    nominal_at: AwareDatetime
    attempt_at: AwareDatetime
    held_by: str | None
    comment: str
    instructions: str
    scheduled_by: ScheduledBy
    booked_by_run: str | None
    status: WakeStatus
    reason: str | None
    error: str | None
    muted: bool
    created_at: AwareDatetime
    updated_at: AwareDatetime


class Wakes(Sparse):
    wakes: list[WakeShape]
    next: str | None = None


class RecallShape(Told):
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
    scheduled_by: ScheduledBy
    created_at: AwareDatetime
    updated_at: AwareDatetime


class WakeChange(Asked):
    """What is left out stays."""

    muted: bool | None = None


class DecisionShape(Told):
    """One link of the chain of decisions about a wake."""

    nominal_at: AwareDatetime
    at: AwareDatetime
    code: str
    run_id: str | None
    detail: dict[str, Any]


class Why(Told):
    decisions: list[DecisionShape]


@router.get("/wakes")
async def list_wakes(
    caller: Reader,
    services: ServicesDep,
    agent_id: Id | None = None,
    status: WakeStatus | None = None,
    most: Most = 50,
    page: Page = None,
) -> Wakes:
    """List the caller's wakes, the soonest first."""
    found = await services.wakes.find(
        caller.user.id, agent_id=agent_id, status=status, after=read_page(page), most=most
    )
    last = found[-1] if found else None
    return Wakes(
        wakes=[WakeShape.model_validate(wake) for wake in found],
        next=next_page(found, most, last and last.nominal_at, last and last.id),
    )


@router.get("/wakes/{wake_id}")
async def get_wake(caller: Reader, services: ServicesDep, wake_id: PathId) -> WakeShape:
    """Show a wake."""
    return WakeShape.model_validate(await services.wakes.get(wake_id, caller.user.id))


@router.patch("/wakes/{wake_id}")
async def change_wake(caller: Planner, services: ServicesDep, wake_id: PathId, asked: WakeChange) -> WakeShape:
    """Mute a wake, or hear of it again: what a muted one has to tell goes to the inbox and to no channel."""
    if asked.muted is None:
        return WakeShape.model_validate(await services.wakes.get(wake_id, caller.user.id))
    return WakeShape.model_validate(await services.wakes.mute(wake_id, caller.user.id, asked.muted))


@router.get("/wakes/{wake_id}/why")
async def why(caller: Reader, services: ServicesDep, wake_id: PathId) -> Why:
    """Tell what was decided about each planned time of a wake, and for which reason."""
    decisions = await services.wakes.why(wake_id, caller.user.id)
    return Why(
        decisions=[
            DecisionShape(
                nominal_at=each.nominal_at, at=each.at, code=each.code, run_id=each.run_id, detail=dict(each.detail)
            )
            for each in decisions
        ]
    )


def tell_recall(wake: Wake) -> RecallShape:
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
        status=_RECALL_STATUS.get(wake.status, "cancelled"),
        reason=wake.reason,
        nominal_at=wake.nominal_at,
        attempt_at=wake.attempt_at,
        scheduled_by=wake.scheduled_by,
        created_at=wake.created_at,
        updated_at=wake.updated_at,
    )
