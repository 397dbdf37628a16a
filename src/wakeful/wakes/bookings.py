"""Book wakes of any kind for programs outside, with one request for all of them."""

from dataclasses import dataclass, replace

from wakeful.agents.rules import pick_agent
from wakeful.core.labels import Via
from wakeful.core.types import Agent, Wake
from wakeful.sessions.messages import agent_of
from wakeful.store.store import Store, Tx
from wakeful.timing.booking_request import (
    BookingRequest,
    OtherAgentsSession,
    rename_fields,
    to_next_run,
    to_recall,
    to_schedule,
)
from wakeful.wakes.next_runs import NextRuns
from wakeful.wakes.recalls import Recalls
from wakeful.wakes.schedules import Schedules


@dataclass(frozen=True, slots=True, kw_only=True)
class BookedWake:
    """A saved wake, its time as text, and what to know about it."""

    wake: Wake
    agent: Agent
    told: str  # its time: absolute with zone, and relative
    warning: str | None = None
    is_repeated: bool = False  # an earlier request booked it, and this one nothing


class Bookings:
    def __init__(self, store: Store, recalls: Recalls, schedules: Schedules, next_runs: NextRuns) -> None:
        self._store = store
        self._recalls = recalls
        self._schedules = schedules
        self._next_runs = next_runs

    async def book(self, request: BookingRequest, user_id: str, via: Via) -> BookedWake:
        """Book a wake for a user through one of the three doors."""
        agent = await self._store.read(lambda tx: _find_agent(tx, request, user_id))
        with rename_fields():
            return await self._book(request, agent, replace(via, key=request.key))

    async def _book(self, request: BookingRequest, agent: Agent, via: Via) -> BookedWake:
        if request.door == "next_run":
            next_run = await self._next_runs.book(to_next_run(request), agent.id, agent.user_id, via)
            return BookedWake(wake=next_run.wake, agent=agent, told=next_run.told, is_repeated=next_run.is_repeated)
        if request.door == "session":
            booked = await self._schedules.book_for_agent(to_schedule(request), agent, request.session_id, via)
        elif request.session_id is None:
            booked = await self._recalls.book_in_new_session(to_recall(request), agent, via)
        else:
            booked = await self._recalls.book(to_recall(request), request.session_id, agent.user_id, via)
        told = booked.told.removeprefix("at ")
        return BookedWake(
            wake=booked.wake, agent=agent, told=told, warning=booked.warning, is_repeated=booked.is_repeated
        )


async def _find_agent(tx: Tx, request: BookingRequest, user_id: str) -> Agent:
    """Return the agent that a request names, or that of its session."""
    agents = await tx.agents.of_user(user_id)
    if request.session_id is None:
        return pick_agent(agents, request.agent)
    agent = await agent_of(tx, request.session_id, user_id)
    if request.agent is not None and pick_agent(agents, request.agent).id != agent.id:
        raise OtherAgentsSession(request.session_id, agent)
    return agent
