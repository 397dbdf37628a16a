"""Routes for pauses of one agent, and of all agents."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter
from pydantic import AwareDatetime, BeforeValidator, Field

from wakeful.domain.bounds.pauses import PausePreset
from wakeful.domain.types import FOREVER
from wakeful.server.auth import Planner, Reader
from wakeful.server.rest.shapes import Done, PathId, RequestBody, Shape, Text, TimeField
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep
from wakeful.service.wakes.pauses import ActivePause

router = APIRouter(route_class=DoorRoute, tags=["pauses"])


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


@router.get("/agents/{agent_id}/pause")
async def get_agent_pause(caller: Reader, services: ServicesDep, agent_id: PathId) -> AgentPauseAnswer:
    """Show the pauses of an agent."""
    active = await services.pauses.active(caller.user.id, agent_id)
    own = [each for each in active if each.pause.agent_id is not None]
    everything = [each for each in active if each.pause.agent_id is None]
    return AgentPauseAnswer(pause=_last_to_body(own), everything=_last_to_body(everything))


@router.put("/agents/{agent_id}/pause")
async def pause_agent(caller: Planner, services: ServicesDep, agent_id: PathId, asked: NewPause) -> PauseAnswer:
    """Pause an agent and replace its earlier pause: its wakes wait. `stop` also stops its live runs."""
    return await _pause(caller, services, agent_id, asked)


@router.delete("/agents/{agent_id}/pause")
async def resume_agent(caller: Planner, services: ServicesDep, agent_id: PathId) -> Done:
    """Resume an agent; `ok` is false if it had no pause of its own."""
    return Done(ok=await services.pauses.resume(caller.user.id, agent_id))


@router.get("/pause")
async def get_pause(caller: Reader, services: ServicesDep) -> AllPausesAnswer:
    """Show the pause of all agents, and in `agents` those of single agents."""
    active = await services.pauses.all_active(caller.user.id)
    everything = [each for each in active if each.pause.agent_id is None]
    own = {each.pause.agent_id: each for each in active if each.pause.agent_id is not None}
    return AllPausesAnswer(
        pause=_last_to_body(everything),
        agents=[PauseShape.from_fields(each.pause, held=each.held) for each in own.values()],
    )


@router.put("/pause")
async def pause_everything(caller: Planner, services: ServicesDep, asked: NewPause) -> PauseAnswer:
    """Pause all agents of the caller. `stop` also stops their live runs."""
    return await _pause(caller, services, None, asked)


@router.delete("/pause")
async def resume_everything(caller: Planner, services: ServicesDep) -> Done:
    """Resume all agents; those with a pause of their own stay paused."""
    return Done(ok=await services.pauses.resume(caller.user.id, None))


async def _pause(caller: Planner, services: ServicesDep, agent_id: str | None, asked: NewPause) -> PauseAnswer:
    made = await services.pauses.pause(
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
