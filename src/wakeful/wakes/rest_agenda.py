"""Routes for the agenda, previews and pauses."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BeforeValidator, Field

from wakeful.core.identity import Identity
from wakeful.core.types import FOREVER
from wakeful.http.auth import Planner, Reader
from wakeful.http.routes import DoorRoute
from wakeful.http.services import Need
from wakeful.http.shapes import BookingShape, Done, Id, PathId, RequestBody, Shape, Text, TimeField, shape_of
from wakeful.runs.rest import RunEntry
from wakeful.timing.bounds import PausePreset
from wakeful.timing.forecast import Planned
from wakeful.timing.next_run_request import NextRunRequest
from wakeful.timing.recall_request import MAX_RUNS, MAX_SECONDS, RecallRequest
from wakeful.wakes.agenda import AgendaService, Preview
from wakeful.wakes.pauses import ActivePause, PauseService

# ── The agenda, and previews of bookings and changes ──────────────────────────────────────────────────────────────────


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
    agenda: Need[AgendaService],
    start: Annotated[AwareDatetime | None, Query(alias="from")] = None,
    end: Annotated[AwareDatetime | None, Query(alias="to")] = None,
) -> AgendaShape:
    """List past and future runs: recurrence is expanded, pauses and bounds are applied, and moves have a reason."""
    found = await agenda.between(caller.user.id, start, end)
    return AgendaShape.from_fields(
        found, ran=[RunEntry.from_fields(run, about=found.subjects.get(run.id, "")) for run in found.ran]
    )


@router.get("/wakes/preview")
async def preview(
    caller: Reader,
    agenda: Need[AgendaService],
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
        return _to_body(await agenda.preview_next_run(wanted, agent_id, caller.user.id))
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
    return _to_body(await agenda.preview(request, agent_id, caller.user.id))


@router.get("/wakes/{wake_id}/preview")
async def preview_change(
    caller: Reader,
    agenda: Need[AgendaService],
    wake_id: PathId,
    when: Words | None = None,
    interval_seconds: Annotated[int, Query(ge=1, le=MAX_SECONDS)] | None = None,
    cron: Words | None = None,
    timezone: Words | None = None,
) -> PreviewShape:
    """List the next five times of a pending wake before it is changed."""
    asked = {"when": when, "interval_seconds": interval_seconds, "cron": cron, "timezone": timezone}
    changes = {name: value for name, value in asked.items() if value is not None}
    return _to_body(await agenda.preview_edit(wake_id, caller.user.id, changes))


def _to_body(found: Preview) -> PreviewShape:
    return PreviewShape.from_fields(found, booking=found.wake.booking)


# ── Pauses of one agent, and of all agents ────────────────────────────────────────────────────────────────────────────


pauses_router = APIRouter(route_class=DoorRoute, tags=["pauses"])


_MAX_SECONDS = 10 * 366 * 86_400


class NewPause(RequestBody):
    """A pause until an instant, for a number of seconds or for a preset; without any, until it is resumed."""

    until: TimeField | None = None
    seconds: Annotated[int, Field(ge=1, le=_MAX_SECONDS)] | None = None
    preset: PausePreset | None = None
    reason: Annotated[Text, Field(max_length=1_000)] = ""
    stop: bool = False  # also stop running runs, chat included


def _unless_forever(until: datetime) -> datetime | None:
    return None if until >= FOREVER else until


class PauseShape(Shape):
    """A period in which wakes wait."""

    id: str
    agent_id: str | None  # null: all agents
    started_at: AwareDatetime
    until: Annotated[AwareDatetime | None, BeforeValidator(_unless_forever)]  # null: until it is resumed
    reason: str
    held: int = Field(description="How many scheduled runs it holds: pending wakes that are planned before its end.")


class PauseAnswer(Shape):
    pause: PauseShape | None


class AgentPauseAnswer(PauseAnswer):
    """The agent's own pause, and the one of all agents, which holds it too."""

    everything: PauseShape | None


class AllPausesAnswer(PauseAnswer):
    """The pause of all agents, and those of single agents."""

    agents: list[PauseShape]


@pauses_router.get("/agents/{agent_id}/pause")
async def get_agent_pause(caller: Reader, pauses: Need[PauseService], agent_id: PathId) -> AgentPauseAnswer:
    """Show the pauses of an agent."""
    active = await pauses.active(caller.user.id, agent_id)
    own = [each for each in active if each.pause.agent_id is not None]
    everything = [each for each in active if each.pause.agent_id is None]
    return AgentPauseAnswer(pause=_last_to_body(own), everything=_last_to_body(everything))


@pauses_router.put("/agents/{agent_id}/pause")
async def pause_agent(caller: Planner, pauses: Need[PauseService], agent_id: PathId, asked: NewPause) -> PauseAnswer:
    """Pause an agent and replace its earlier pause: its wakes wait. `stop` also stops its live runs."""
    return await _pause(caller, pauses, agent_id, asked)


@pauses_router.delete("/agents/{agent_id}/pause")
async def resume_agent(caller: Planner, pauses: Need[PauseService], agent_id: PathId) -> Done:
    """Resume an agent; `ok` is false if it had no pause of its own."""
    return Done(ok=await pauses.resume(caller.user.id, agent_id))


@pauses_router.get("/pause")
async def get_pause(caller: Reader, pauses: Need[PauseService]) -> AllPausesAnswer:
    """Show the pause of all agents, and in `agents` those of single agents."""
    active = await pauses.all_active(caller.user.id)
    everything = [each for each in active if each.pause.agent_id is None]
    own = {each.pause.agent_id: each for each in active if each.pause.agent_id is not None}
    return AllPausesAnswer(
        pause=_last_to_body(everything),
        agents=[PauseShape.from_fields(each.pause, held=each.held) for each in own.values()],
    )


@pauses_router.put("/pause")
async def pause_everything(caller: Planner, pauses: Need[PauseService], asked: NewPause) -> PauseAnswer:
    """Pause all agents of the caller. `stop` also stops their live runs."""
    return await _pause(caller, pauses, None, asked)


@pauses_router.delete("/pause")
async def resume_everything(caller: Planner, pauses: Need[PauseService]) -> Done:
    """Resume all agents; those with a pause of their own stay paused."""
    return Done(ok=await pauses.resume(caller.user.id, None))


async def _pause(caller: Identity, pauses: PauseService, agent_id: str | None, asked: NewPause) -> PauseAnswer:
    made = await pauses.pause(
        caller.user.id,
        agent_id,
        asked.until,
        asked.reason,
        preset=asked.preset,
        length=None if asked.seconds is None else timedelta(seconds=asked.seconds),
        stop=asked.stop,
    )
    return PauseAnswer(pause=_last_to_body([made]))


def _last_to_body(pauses: Sequence[ActivePause]) -> PauseShape | None:
    return PauseShape.from_fields(pauses[-1].pause, held=pauses[-1].held) if pauses else None
