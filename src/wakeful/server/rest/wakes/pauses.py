"""Pauses, of one agent and of everything."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import AwareDatetime, Field

from wakeful.domain.bounds.pauses import PausePreset
from wakeful.domain.types import FOREVER, Pause
from wakeful.server.auth import Planner, Reader
from wakeful.server.rest.shapes import Done, PathId, RequestBody, Shape, Text, TimeField
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep

router = APIRouter(route_class=DoorRoute, tags=["pauses"])


class NewPause(RequestBody):
    """A pause until an instant or as a preset says; without either, until someone resumes."""

    until: TimeField | None = None
    preset: PausePreset | None = None
    reason: Annotated[Text, Field(max_length=1_000)] = ""
    stop: bool = False  # also stop running runs, chat included


class PauseShape(Shape):
    """A stretch of time in which wakes wait."""

    id: str
    agent_id: str | None  # null: everything
    started_at: AwareDatetime
    until: AwareDatetime | None  # null: until someone resumes
    reason: str


class PauseAnswer(Shape):
    pause: PauseShape | None


class AgentPauseAnswer(PauseAnswer):
    """The agent's own pause, and the one of everything, which holds it too."""

    everything: PauseShape | None


@router.get("/agents/{agent_id}/pause")
async def get_agent_pause(caller: Reader, services: ServicesDep, agent_id: PathId) -> AgentPauseAnswer:
    """Show what pauses an agent."""
    active = await services.pauses.active(caller.user.id, agent_id)
    own = [pause for pause in active if pause.agent_id is not None]
    everything = [pause for pause in active if pause.agent_id is None]
    return AgentPauseAnswer(pause=_last_to_body(own), everything=_last_to_body(everything))


@router.put("/agents/{agent_id}/pause")
async def pause_agent(caller: Planner, services: ServicesDep, agent_id: PathId, asked: NewPause) -> PauseAnswer:
    """Pause an agent in place of the pause before: its wakes wait. `stop` stops its live runs too."""
    return await _pause(caller, services, agent_id, asked)


@router.delete("/agents/{agent_id}/pause")
async def resume_agent(caller: Planner, services: ServicesDep, agent_id: PathId) -> Done:
    """Resume an agent; false if it was not paused by itself."""
    return Done(ok=await services.pauses.resume(caller.user.id, agent_id))


@router.get("/pause")
async def get_pause(caller: Reader, services: ServicesDep) -> PauseAnswer:
    """Show the pause of everything."""
    return PauseAnswer(pause=_last_to_body(await services.pauses.active(caller.user.id, None)))


@router.put("/pause")
async def pause_everything(caller: Planner, services: ServicesDep, asked: NewPause) -> PauseAnswer:
    """Pause every agent of the caller. `stop` stops their live runs too."""
    return await _pause(caller, services, None, asked)


@router.delete("/pause")
async def resume_everything(caller: Planner, services: ServicesDep) -> Done:
    """Lift the pause of everything; agents that are paused by themselves stay so."""
    return Done(ok=await services.pauses.resume(caller.user.id, None))


async def _pause(caller: Planner, services: ServicesDep, agent_id: str | None, asked: NewPause) -> PauseAnswer:
    pause = await services.pauses.pause(
        caller.user.id, agent_id, asked.until, asked.reason, preset=asked.preset, stop=asked.stop
    )
    return PauseAnswer(pause=_to_body(pause))


def _last_to_body(pauses: list[Pause]) -> PauseShape | None:
    return _to_body(pauses[-1]) if pauses else None


def _to_body(pause: Pause) -> PauseShape:
    return PauseShape(
        id=pause.id,
        agent_id=pause.agent_id,
        started_at=pause.started_at,
        until=None if pause.until >= FOREVER else pause.until,
        reason=pause.reason,
    )
