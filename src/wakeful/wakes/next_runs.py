"""Book, show, cancel and run an agent's next run."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from wakeful.agents.rules import within
from wakeful.core.errors import Unavailable
from wakeful.core.labels import TOOL, Via, stamp, stamp_booked
from wakeful.core.outside import ActingRun
from wakeful.core.types import Agent, Run, Wake
from wakeful.core.values import replace
from wakeful.database.service import AgentData
from wakeful.runs.service import check_brake
from wakeful.store.base import Base
from wakeful.store.store import Tx
from wakeful.telemetry.tracing import current_traceparent
from wakeful.timing import bounds, next_run_request
from wakeful.timing.bounds import Clamped
from wakeful.timing.lifecycle import RequestedTime
from wakeful.timing.next_run_request import NextRunRequest
from wakeful.toolbox.registry import ToolCatalog
from wakeful.wakes.service import WakeService, describe_time, find_repeated, put_in_slot


@dataclass(frozen=True, slots=True, kw_only=True)
class BookedNextRun:
    """A saved next run, and how its time was adjusted."""

    wake: Wake
    clamped: Clamped
    told: str  # its time as text: absolute with zone, and relative
    asked: str  # the requested time, likewise
    is_repeated: bool = False  # an earlier request booked it


class NextRuns:
    def __init__(self, base: Base, wakes: WakeService, catalog: ToolCatalog, data: AgentData) -> None:
        self._store = base.store
        self._wakes = wakes
        self._clock = base.clock
        self._rules = base.rules
        self._catalog = catalog
        self._data = data

    async def book_in_run(
        self,
        request: NextRunRequest,
        run: Run,
        agent: Agent,
        only: Collection[str] | None = None,
        approved: str | None = None,
    ) -> BookedNextRun:
        """Book a next run for an agent from inside a run, within its bounds; `approved` is one that it may replace."""
        tools, by = within(self._catalog.names_for(agent), only), ActingRun(run=run, approved=approved)
        return await self._book(request, run.agent_id, run.user_id, TOOL, by, tools)

    async def book(self, request: NextRunRequest, agent_id: str, user_id: str, via: Via | None = None) -> BookedNextRun:
        """Book a next run for a user, limited only to the time between now and the horizon."""
        return await self._book(request, agent_id, user_id, via)

    async def pending(self, agent_id: str, user_id: str) -> Wake | None:
        """Return the pending next run of an agent."""

        async def work(tx: Tx) -> Wake | None:
            await tx.agents.get(agent_id, user_id)
            return await tx.wakes.in_slot(next_run_request.slot_of(agent_id))

        return await self._store.read(work)

    def describe_time(self, at: datetime, agent: Agent) -> str:
        """Return a time as text: absolute with zone, and relative."""
        return describe_time(at, agent, self._clock.now())

    async def cancel(self, agent_id: str, user_id: str, *, by: ActingRun | None = None) -> Wake | None:
        """Cancel the pending next run, also one that a user booked. None if there is none."""
        wake = await self.pending(agent_id, user_id)
        return None if wake is None else await self._wakes.cancel(wake.id, user_id, by=by)

    async def run_now(self, agent_id: str, user_id: str, via: Via | None = None) -> Run:
        """Run the pending next run at once, even if the agent is paused."""
        wake = await self.pending(agent_id, user_id)
        if wake is None:
            raise next_run_request.NoNextRun(agent_id)
        return await self._wakes.run_now(wake.id, user_id, via)

    async def _check_views(self, names: Collection[str], agent: Agent) -> None:
        try:
            known = await self._data.views_of(agent)
        except Unavailable:  # a missing view is better than a run that is not booked
            return
        next_run_request.check_views(names, known)

    async def _book(
        self,
        request: NextRunRequest,
        agent_id: str,
        user_id: str,
        via: Via | None,
        by: ActingRun | None = None,
        tools: tuple[str, ...] | None = None,
    ) -> BookedNextRun:
        now, run = self._clock.now(), None if by is None else by.run
        zone: str | None = None
        if request.context_views or request.when is not None:
            asked_of = await self._store.read(lambda tx: tx.agents.get(agent_id, user_id))
            if request.context_views:
                await self._check_views(request.context_views, asked_of)
            zone = asked_of.known_zone
        asked_time = next_run_request.read_time(request, now, zone)
        traceparent = current_traceparent()

        async def work(tx: Tx) -> BookedNextRun | None:
            if via is not None and via.token_id is not None and via.is_braked:
                await tx.token_uses.lock(via.token_id)  # before the row of the pending one is locked
            # Read again: the user may have turned self-scheduling off since the run began.
            agent = await tx.agents.get(agent_id, user_id)
            if run is not None and not agent.self_scheduling:
                raise next_run_request.SelfSchedulingOff(agent)
            clamped = await _clamp(tx, asked_time, agent, now, run)
            made = next_run_request.make(
                request,
                asked_time,
                clamped,
                agent,
                now,
                self._rules,
                by="user" if run is None else "agent",
                booked_by_run=None if run is None else run.id,
                tools=tools,
            )
            stamped = stamp(made, via) if run is None else stamp_booked(made, run)
            wake = replace(stamped, traceparent=traceparent)
            if via is not None and via.is_braked:
                first = await find_repeated(tx, wake, via.key, now)
                if first is not None:
                    return _booked(first, clamped, agent, now, is_repeated=True)
            await check_brake(tx, via, now, self._rules)
            if not await put_in_slot(tx, wake, now, by):
                return None
            return _booked(wake, clamped, agent, now)

        # Another node may fill the empty slot between our read and our insert; then we replace its booking.
        while (booked := await self._store.write(work)) is None:
            continue
        return booked


def _booked(wake: Wake, clamped: Clamped, agent: Agent, now: datetime, *, is_repeated: bool = False) -> BookedNextRun:
    return BookedNextRun(
        wake=wake,
        clamped=clamped,
        told=describe_time(wake.nominal_at, agent, now),
        asked=describe_time(clamped.requested, agent, now),
        is_repeated=is_repeated,
    )


async def _clamp(tx: Tx, asked_time: RequestedTime, agent: Agent, now: datetime, run: Run | None) -> Clamped:
    used_today = await tx.runs.next_runs_since(agent.id, bounds.local_day_start(now, agent.zone))
    pauses = await tx.agents.pauses_of(agent.user_id, agent.id, now)
    by = "user" if run is None else "agent"
    return bounds.clamp(asked_time.at or now, now, agent.bounds, agent.zone, pauses, used_today, by)
