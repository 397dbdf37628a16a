"""The agenda: past runs, planned wakes and those on hold; and previews of bookings and edits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from wakeful.core import ids
from wakeful.core.clock import Clock
from wakeful.core.errors import Invalid
from wakeful.core.types import Pause, Rules, Run, Wake
from wakeful.runs.service import RunService
from wakeful.store.store import Store, Tx
from wakeful.timing import bounds, forecast, next_run_request, recall_request
from wakeful.timing.bounds import PausePreset
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


# Pauses: wakes wait and keep their place; running runs and chat continue.


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivePause:
    """A pause, and how many scheduled runs it holds."""

    pause: Pause
    held: int


class PauseService:
    """Pauses and resumes one agent, or all agents of a user."""

    def __init__(self, store: Store, runs: RunService, clock: Clock) -> None:
        self._store = store
        self._runs = runs
        self._clock = clock

    async def pause(
        self,
        user_id: str,
        agent_id: str | None,
        until: datetime | None,
        reason: str = "",
        *,
        preset: PausePreset | None = None,
        length: timedelta | None = None,
        stop: bool = False,
    ) -> ActivePause:
        """Pause until an instant, for a length, or until resumed. With `stop`, also stop running runs, chat included.

        A new pause replaces the previous one.
        """
        now = self._clock.now()

        async def work(tx: Tx) -> ActivePause:
            pause = Pause(
                id=ids.new_id(now),
                user_id=user_id,
                agent_id=agent_id,
                started_at=now,
                until=bounds.end_of(until, preset, now, await _zone(tx, user_id, agent_id), length),
                reason=reason,
            )
            await tx.agents.end_pauses(user_id, agent_id, now)
            await tx.agents.add_pause(pause)
            # This pause may be shorter than an earlier one, so decide again about the wakes that it held.
            await tx.wakes.release_held(user_id, agent_id, now)
            return await _count(tx, pause)

        pause = await self._store.write(work)
        if stop:  # after the commit: before it, another run could begin
            await self._stop_live(user_id, agent_id)
        return pause

    async def resume(self, user_id: str, agent_id: str | None) -> bool:
        """End the pause. Wakes that came due meanwhile do not count as late. False if there was none."""
        now = self._clock.now()

        async def work(tx: Tx) -> bool:
            if agent_id is not None:
                await tx.agents.get(agent_id, user_id)
            ended = await tx.agents.end_pauses(user_id, agent_id, now)
            await tx.wakes.release_held(user_id, agent_id, now)
            return ended > 0

        return await self._store.write(work)

    async def active(self, user_id: str, agent_id: str | None) -> list[ActivePause]:
        """Return the active pauses of an agent, including those of all agents; without an agent, only the latter."""
        now = self._clock.now()

        async def work(tx: Tx) -> list[ActivePause]:
            if agent_id is not None:
                await tx.agents.get(agent_id, user_id)
            return [await _count(tx, pause) for pause in await tx.agents.pauses_of(user_id, agent_id, now)]

        return await self._store.read(work)

    async def all_active(self, user_id: str) -> list[ActivePause]:
        """Return the active pauses of all agents and of single ones."""
        now = self._clock.now()

        async def work(tx: Tx) -> list[ActivePause]:
            return [await _count(tx, pause) for pause in await tx.agents.all_pauses_of(user_id, now)]

        return await self._store.read(work)

    async def holding(self, wakes: Sequence[Wake]) -> frozenset[str]:
        """Return the ids of those wakes of one user that a pause holds at their planned time."""
        if not wakes:
            return frozenset()
        now = self._clock.now()
        active = await self._store.read(lambda tx: tx.agents.all_pauses_of(wakes[0].user_id, now))
        return frozenset(wake.id for wake in wakes if bounds.is_held(wake, active))

    async def _stop_live(self, user_id: str, agent_id: str | None) -> None:
        async def work(tx: Tx) -> list[Run]:
            return [
                run
                for status in ("queued", "running")
                for run in await tx.runs.of_user(user_id, agent_id=agent_id, status=status, most=_PAGE)
            ]

        for run in await self._store.read(work):
            if not run.is_headless or run.started_at is not None:  # a wake that has not begun keeps its place
                await self._runs.stop(run.id, user_id)


async def _count(tx: Tx, pause: Pause) -> ActivePause:
    held = await tx.wakes.count_live(pause.user_id, pause.agent_id, pause.until)
    return ActivePause(pause=pause, held=held)


async def _zone(tx: Tx, user_id: str, agent_id: str | None) -> str:
    """Return the zone that decides when tomorrow begins: the agent's or, for all agents, the user's."""
    if agent_id is not None:
        return (await tx.agents.get(agent_id, user_id)).zone
    if known := (await tx.accounts.user(user_id)).timezone:
        return known
    agents = await tx.agents.of_user(user_id)
    return agents[0].zone if agents else "UTC"
