"""Book, show, cancel and run an agent's next run."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from wakeful.clock import Clock
from wakeful.domain.agents.agents import within
from wakeful.domain.agents.directories import MemoryElsewhere
from wakeful.domain.bounds import bounds, clamp
from wakeful.domain.bounds.clamp import Clamped
from wakeful.domain.bounds.limits import Rules
from wakeful.domain.doors import next_run
from wakeful.domain.doors.next_run import NextRunRequest
from wakeful.domain.errors import Unavailable
from wakeful.domain.types import Agent, Run, Wake
from wakeful.domain.wakes.create import RequestedTime
from wakeful.service.wakes.time_words import tell_time
from wakeful.service.wakes.wakes import WakeService, put_in_slot
from wakeful.store.store import Store, Tx

ViewsOf = Callable[[Agent], Awaitable[Mapping[str, Sequence[str]]]]
"""The views in an agent's database, each with the parameters it cannot do without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookedNextRun:
    """A next run that is durable, and what became of the time that was asked for."""

    wake: Wake
    clamped: Clamped
    told: str  # when it will be: absolute with zone, and relative
    asked: str  # when it was wanted, likewise


class NextRuns:
    """Book, show, cancel and run what waits in an agent's slot."""

    def __init__(
        self,
        store: Store,
        wakes: WakeService,
        clock: Clock,
        rules: Rules,
        tools_of: Callable[[Agent], Collection[str]],
        views_of: ViewsOf,
    ) -> None:
        self._store = store
        self._wakes = wakes
        self._clock = clock
        self._rules = rules
        self._tools_of = tools_of  # the names of the tools an agent is shown
        self._views_of = views_of  # the names of the views in an agent's database

    async def book_in_run(
        self, request: NextRunRequest, run: Run, agent: Agent, only: Collection[str] | None = None
    ) -> BookedNextRun:
        """Book what an agent asks for from inside a run, within the bounds that people set."""
        return await self._book(request, run.agent_id, run.user_id, run, within(self._tools_of(agent), only))

    async def book(self, request: NextRunRequest, agent_id: str, user_id: str) -> BookedNextRun:
        """Book what a person asks for, bound only by the present and the horizon."""
        return await self._book(request, agent_id, user_id, None)

    async def pending(self, agent_id: str, user_id: str) -> Wake | None:
        """Return the next run that waits for an agent."""

        async def work(tx: Tx) -> Wake | None:
            await tx.agents.get(agent_id, user_id)
            return await tx.wakes.in_slot(next_run.slot_of(agent_id))

        return await self._store.read(work)

    def tell_time(self, at: datetime, agent: Agent) -> str:
        """Say when something is or was to be: absolute with zone, and relative."""
        return tell_time(at, agent, self._clock.now())

    async def cancel(self, agent_id: str, user_id: str) -> Wake | None:
        """Clear the slot, also of a person's booking. None if it was empty."""
        wake = await self.pending(agent_id, user_id)
        return None if wake is None else await self._wakes.cancel(wake.id, user_id)

    async def run_now(self, agent_id: str, user_id: str) -> Run:
        """Run what waits in the slot at once, paused or not, because a person said so."""
        return await self._wakes.run_now((await self._require(agent_id, user_id)).id, user_id)

    async def _require(self, agent_id: str, user_id: str) -> Wake:
        wake = await self.pending(agent_id, user_id)
        if wake is None:
            raise next_run.NoNextRun(agent_id)
        return wake

    async def _check_views(self, names: Collection[str], agent: Agent) -> None:
        try:
            known = await self._views_of(agent)
        except MemoryElsewhere:
            raise  # another node can tell
        except Unavailable:  # a run that is not booked would be worse than a view that is not there
            return
        next_run.check_views(names, known)

    async def _book(
        self,
        request: NextRunRequest,
        agent_id: str,
        user_id: str,
        run: Run | None,
        tools: tuple[str, ...] | None = None,
    ) -> BookedNextRun:
        now = self._clock.now()
        zone: str | None = None
        if request.context_views or request.when is not None:
            asked_of = await self._store.read(lambda tx: tx.agents.get(agent_id, user_id))
            if request.context_views:
                await self._check_views(request.context_views, asked_of)
            zone = asked_of.known_zone
        asked_time = next_run.read_time(request, now, zone)

        async def work(tx: Tx) -> BookedNextRun | None:
            # As it is now, not as it was when the run began: a person may have turned it off meanwhile.
            agent = await tx.agents.get(agent_id, user_id)
            if run is not None and not agent.self_scheduling:
                raise next_run.SelfSchedulingOff(agent)
            clamped = await _clamp(tx, asked_time, agent, now, run)
            wake = next_run.make(
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
            if not await put_in_slot(tx, wake, now):
                return None
            return BookedNextRun(
                wake=wake,
                clamped=clamped,
                told=tell_time(clamped.at, agent, now),
                asked=tell_time(clamped.requested, agent, now),
            )

        # On another node someone may take the free slot between our look and our insert; then that one is replaced.
        while (booked := await self._store.write(work)) is None:
            continue
        return booked


async def _clamp(tx: Tx, asked_time: RequestedTime, agent: Agent, now: datetime, run: Run | None) -> Clamped:
    used_today = await tx.runs.next_runs_since(agent.id, bounds.local_day_start(now, agent.zone))
    pauses = await tx.agents.pauses_of(agent.user_id, agent.id, now)
    by = "user" if run is None else "agent"
    return clamp.clamp(asked_time.at or now, now, agent.bounds, agent.zone, pauses, used_today, by)
