"""The agenda: past runs, planned wakes and those that a pause holds; and previews of bookings and edits."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from wakeful.core.clock import Clock
from wakeful.core.errors import Invalid
from wakeful.core.types import Rules, Run, Wake
from wakeful.store.store import Store, Tx
from wakeful.timing import bounds, forecast, next_run_request, recall_request
from wakeful.timing.forecast import AgendaContext, Planned
from wakeful.timing.next_run_request import NextRunRequest
from wakeful.timing.recall_request import RecallRequest
from wakeful.wakes.service import plan_edit

MAX_SPAN = timedelta(days=92)
_PAGE = 1_000
_PREVIEWED = 5  # times
_PREVIEWED_AHEAD = timedelta(days=3_660)
_NO_SESSION = "not opened yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agenda:
    """Past runs and planned wakes of a period."""

    ran: list[Run]
    subjects: dict[str, str]  # what each run was about, by its id
    planned: list[Planned]
    held: list[Planned]  # by a pause without an end: when they would run if it ended now


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A booking or edit that is not saved: the wake as it would be, and its next times."""

    wake: Wake
    times: list[Planned]
    held: list[Planned]


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
            planned = forecast.plan_runs(live, context, now, end, self._rules) if end > now else []
            held = forecast.plan_held(live, context, now, end, self._rules) if end > now else []
            return Agenda(
                ran=ran,
                subjects=await tx.runs.subjects([run.id for run in ran]),
                planned=[each for each in planned if each.at >= start],
                held=[each for each in held if each.at >= start],
            )

        return await self._store.read(work)

    async def preview(self, request: RecallRequest, agent_id: str, user_id: str) -> Preview:
        """Return the next times of a recall that a person would book."""
        now = self._clock.now()

        async def work(tx: Tx) -> Preview:
            agent = await tx.agents.get(agent_id, user_id)
            wake = recall_request.make(request, agent, _NO_SESSION, user_id, now, self._rules, by="user")
            return await self._preview(tx, wake, now)

        return await self._store.read(work)

    async def preview_next_run(self, request: NextRunRequest, agent_id: str, user_id: str) -> Preview:
        """Return when a next run that a person would book will run, moved into the agent's horizon."""
        now = self._clock.now()

        async def work(tx: Tx) -> Preview:
            agent = await tx.agents.get(agent_id, user_id)
            asked = next_run_request.read_time(request, now, agent.known_zone)
            clamped = bounds.clamp(asked.at or now, now, agent.bounds, agent.zone, (), 0, "user")
            wake = next_run_request.make(request, asked, clamped, agent, now, self._rules, by="user")
            return await self._preview(tx, wake, now)

        return await self._store.read(work)

    async def preview_edit(self, wake_id: str, user_id: str, asked: Mapping[str, Any]) -> Preview:
        """Return the next times of a pending wake after a change."""
        now = self._clock.now()

        async def work(tx: Tx) -> Preview:
            edit = await plan_edit(tx, await tx.wakes.read(wake_id, user_id), asked, now, self._rules)
            return await self._preview(tx, edit.after, now)

        return await self._store.read(work)

    async def _preview(self, tx: Tx, wake: Wake, now: datetime) -> Preview:
        context, end = await _context(tx, wake.user_id, now), now + _PREVIEWED_AHEAD
        return Preview(
            wake=wake,
            times=forecast.plan_runs([wake], context, now, end, self._rules, most=_PREVIEWED),
            held=forecast.plan_held([wake], context, now, end, self._rules, most=_PREVIEWED),
        )


async def _context(tx: Tx, user_id: str, now: datetime) -> AgendaContext:
    agents = {agent.id: agent for agent in await tx.agents.of_user(user_id)}
    used: dict[str, int] = {}
    for agent in agents.values():
        used[agent.id] = await tx.runs.next_runs_since(agent.id, bounds.local_day_start(now, agent.zone))
    return AgendaContext(agents=agents, pauses=await tx.agents.pauses_since(now), used_today=used)
