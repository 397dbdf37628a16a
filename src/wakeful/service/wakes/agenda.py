"""The agenda: past runs and planned wakes."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from wakeful.clock import Clock
from wakeful.domain.bounds import bounds
from wakeful.domain.bounds.limits import Rules
from wakeful.domain.doors import recall
from wakeful.domain.doors.recall import RecallRequest
from wakeful.domain.errors import Invalid
from wakeful.domain.types import Run
from wakeful.domain.wakes import agenda
from wakeful.domain.wakes.agenda import AgendaContext, Planned
from wakeful.store.store import Store, Tx

MAX_SPAN = timedelta(days=92)
_PAGE = 1_000
_PREVIEWED = 5
_NO_SESSION = "not opened yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agenda:
    """Past runs and planned wakes of a period."""

    ran: list[Run]
    planned: list[Planned]


class AgendaService:
    """Plans ahead with the same rules that fire wakes."""

    def __init__(self, store: Store, clock: Clock, rules: Rules) -> None:
        self._store = store
        self._clock = clock
        self._rules = rules

    async def between(self, user_id: str, start: datetime | None, end: datetime | None) -> Agenda:
        """Return the runs and planned wakes of a user in a period; by default from yesterday to in a week."""
        now = self._clock.now()
        start = start or now - timedelta(days=1)
        end = end or now + timedelta(days=7)
        if not timedelta(0) < end - start <= MAX_SPAN:
            raise Invalid(
                f"`to` must be later than `from`, by at most {MAX_SPAN.days} days; got from {start.isoformat()} to "
                f"{end.isoformat()}.",
                field="to",
            )

        async def work(tx: Tx) -> Agenda:
            live = await tx.wakes.of_user(user_id, is_live=True, most=_PAGE)
            context = await _context(tx, user_id, now)
            found = await tx.runs.of_user(user_id, before=(end, "~"), most=_PAGE) if start < now else []
            ran = [run for run in reversed(found) if run.queued_at >= start]
            planned = agenda.plan(live, context, now, end, self._rules) if end > now else []
            return Agenda(ran=ran, planned=[each for each in planned if each.at >= start])

        return await self._store.read(work)

    async def preview(self, request: RecallRequest, agent_id: str, user_id: str) -> list[Planned]:
        """Return the next times of a recall before it is booked."""
        now = self._clock.now()

        async def work(tx: Tx) -> list[Planned]:
            agent = await tx.agents.get(agent_id, user_id)
            wake = recall.make(request, agent, _NO_SESSION, user_id, now, self._rules, by="user")
            context = await _context(tx, user_id, now)
            return agenda.plan([wake], context, now, now + timedelta(days=3_660), self._rules, most=_PREVIEWED)

        return await self._store.read(work)


async def _context(tx: Tx, user_id: str, now: datetime) -> AgendaContext:
    agents = {agent.id: agent for agent in await tx.agents.of_user(user_id)}
    used: dict[str, int] = {}
    for agent in agents.values():
        used[agent.id] = await tx.runs.next_runs_since(agent.id, bounds.local_day_start(now, agent.zone))
    return AgendaContext(agents=agents, pauses=await tx.agents.pauses_since(now), used_today=used)
