"""What will run and what ran."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from wakeful.clock import Clock
from wakeful.domain.bounds import bounds
from wakeful.domain.bounds.limits import Rules
from wakeful.domain.doors import recall
from wakeful.domain.doors.recall import RecallRequest
from wakeful.domain.errors import Invalid
from wakeful.domain.types import Agent, Run
from wakeful.domain.wakes import agenda
from wakeful.domain.wakes.agenda import AgendaContext, Planned
from wakeful.store.store import Store, Tx

LONGEST = timedelta(days=92)
_PAGE = 1_000
_PREVIEWED = 5
_NOWHERE = "a session to be"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agenda:
    """A stretch of time: what ran in it, and what will."""

    ran: list[Run]
    planned: list[Planned]


class AgendaService:
    """Foresees with the rule that fires."""

    def __init__(self, store: Store, clock: Clock, rules: Rules) -> None:
        self._store = store
        self._clock = clock
        self._rules = rules

    async def between(self, user_id: str, start: datetime | None, end: datetime | None) -> Agenda:
        """Return what a user's agents did and will do in a stretch of time; without one, in the week around now."""
        now = self._clock.now()
        start = start or now - timedelta(days=1)
        end = end or now + timedelta(days=7)
        if not timedelta(0) < end - start <= LONGEST:
            raise Invalid(
                f"From {start.isoformat()} to {end.isoformat()} is no stretch of at most {LONGEST.days} days. "
                "Let `to` be later than `from`, and not by more.",
                field="to",
            )

        async def work(tx: Tx) -> Agenda:
            live = await tx.wakes.of_user(user_id, is_live=True, most=_PAGE)
            around = await _look_around(tx, user_id, now)
            found = await tx.runs.of_user(user_id, before=(end, "~"), most=_PAGE) if start < now else []
            ran = [run for run in reversed(found) if run.queued_at >= start]
            planned = agenda.plan(live, around, now, end, self._rules) if end > now else []
            return Agenda(ran=ran, planned=[each for each in planned if each.at >= start])

        return await self._store.read(work)

    async def preview(self, request: RecallRequest, agent_id: str, user_id: str) -> list[Planned]:
        """Return the next times of a recall that nobody has booked yet."""
        now = self._clock.now()

        async def work(tx: Tx) -> list[Planned]:
            agent = await tx.agents.get(agent_id, user_id)
            wake = recall.make(request, agent, _NOWHERE, user_id, now, self._rules, by="user")
            around = await _look_around(tx, user_id, now)
            return agenda.plan([wake], around, now, now + 10 * 366 * timedelta(days=1), self._rules, most=_PREVIEWED)

        return await self._store.read(work)


async def _look_around(tx: Tx, user_id: str, now: datetime) -> AgendaContext:
    agents: dict[str, Agent] = {agent.id: agent for agent in await tx.agents.of_user(user_id)}
    used: dict[str, int] = {}
    for agent in agents.values():
        midnight = bounds.local_day_start(now, agent.zone)
        used[agent.id] = await tx.runs.next_runs_since(agent.id, midnight)
    return AgendaContext(agents=agents, pauses=await tx.agents.pauses_since(now), used_today=used)
