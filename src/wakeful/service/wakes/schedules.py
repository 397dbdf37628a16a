"""What agents and people may ask of a session's schedules."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from wakeful.clock import Clock
from wakeful.domain import ids
from wakeful.domain.agents.agents import within
from wakeful.domain.agents.skills import Skill
from wakeful.domain.bounds.limits import Rules
from wakeful.domain.doors import schedule, session_config
from wakeful.domain.doors.schedule import Schedule, ScheduleRequest, ScheduleStatus
from wakeful.domain.types import Agent, ClaimedRun, Wake
from wakeful.domain.wakes.edits import WakeNotLive
from wakeful.domain.wakes.kinds import is_schedule
from wakeful.service.wakes.time_words import tell_time
from wakeful.service.wakes.wakes import WakeService
from wakeful.store.store import Store, Tx
from wakeful.store.wakes.wakes import NoSuchWake

_READ = 200  # at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class BookedSchedule:
    """A schedule that is durable, its time in words, and what of its configuration has no effect."""

    schedule: Schedule
    told: str  # absolute with zone, and relative
    warning: str | None = None


class Schedules:
    """Book, list, show and cancel the schedules of a session."""

    def __init__(
        self,
        store: Store,
        wakes: WakeService,
        clock: Clock,
        rules: Rules,
        tools_of: Callable[[Agent], Collection[str]],
        prepare: Callable[[Agent], Awaitable[Sequence[str]]],
        skills_of: Callable[[Agent], Awaitable[Sequence[Skill]]],
        default_model: str,
    ) -> None:
        self._store = store
        self._wakes = wakes
        self._clock = clock
        self._rules = rules
        self._tools_of = tools_of  # the names of the tools an agent is shown
        self._prepare = prepare  # starts an agent's MCP servers and returns what is amiss with them
        self._skills_of = skills_of  # reads them from the agent's files
        self._default_model = default_model

    async def book_in_run(
        self, request: ScheduleRequest, run: ClaimedRun, agent: Agent, only: Collection[str] | None = None
    ) -> BookedSchedule:
        """Book what an agent asks for from inside a run. What it wakes never has more tools than that run."""
        now = self._clock.now()
        tools = within(self._tools_of(agent), only)
        wake = schedule.make(
            request,
            agent,
            run.session_id,
            run.user_id,
            now,
            self._rules,
            models=self._models_of(agent),
            tools=tools,
            skills=await self._skills_for(request, agent),
            by="agent",
            booked_by_run=run.id,
        )
        return await self._book(wake, agent, now)

    async def book(self, request: ScheduleRequest, session_id: str, user_id: str) -> BookedSchedule:
        """Book what a person asks for."""
        now = self._clock.now()

        async def look(tx: Tx) -> Agent:
            session = await tx.sessions.get(session_id, user_id)
            return await tx.agents.get(session.agent_id, user_id)

        agent = await self._store.read(look)
        # The tools of a server are known once it has started. In a run they are; a person may be the first to name one.
        amiss = await self._prepare(agent) if session_config.names_tool_of(agent, request.session_config) else ()
        try:
            wake = schedule.make(
                request,
                agent,
                session_id,
                user_id,
                now,
                self._rules,
                models=self._models_of(agent),
                tools=self._tools_of(agent),
                skills=await self._skills_for(request, agent),
                by="user",
            )
        except session_config.BadSessionConfig as error:
            error.hint = " ".join(amiss) or None
            raise
        return await self._book(wake, agent, now)

    async def listed(
        self,
        session_id: str,
        user_id: str,
        *,
        status: ScheduleStatus | None = None,
        before: tuple[datetime, str] | None = None,
        most: int = 50,
    ) -> list[Schedule]:
        """Return a page of the schedules of a session, ended ones included, the newest first."""

        async def work(tx: Tx) -> list[Schedule]:
            await tx.sessions.get(session_id, user_id)
            shown: list[Schedule] = []
            last = before
            while found := await tx.wakes.of_session(session_id, _READ, door="scheduler", before=last):
                for wake in found:
                    if status is not None and schedule.describe(wake).status not in (status, "failed"):
                        continue  # no need to look closer: only what failed may have arrived all the same
                    found_one = await _show(tx, wake)
                    if status in (None, found_one.status):
                        shown.append(found_one)
                    if len(shown) == most:
                        return shown
                last = found[-1].created_at, found[-1].id
            return shown

        return await self._store.read(work)

    async def pending(self, session_id: str, user_id: str) -> list[Schedule]:
        """Return what still waits in a session, the soonest first."""

        async def work(tx: Tx) -> list[Schedule]:
            await tx.sessions.get(session_id, user_id)
            found = await tx.wakes.of_session(session_id, _READ, door="scheduler", is_live=True)
            found.sort(key=lambda wake: (wake.nominal_at, wake.created_at, wake.id))
            return [await _show(tx, wake) for wake in found]

        return await self._store.read(work)

    async def get(self, schedule_id: str, user_id: str) -> Schedule:
        async def work(tx: Tx) -> Schedule:
            return await _show(tx, await _find(tx, schedule_id, user_id))

        return await self._store.read(work)

    async def cancel(self, schedule_id: str, user_id: str, session_id: str | None = None) -> Schedule:
        """Cancel what has not been delivered; with a session, only one that was booked there."""
        wake = await self._store.read(lambda tx: _find(tx, schedule_id, user_id))
        if session_id not in (None, wake.session_id):
            raise schedule.NoSuchSchedule(schedule_id)
        try:
            cancelled = await self._wakes.cancel(wake.id, user_id)
        except WakeNotLive:
            raise schedule.NotCancellable(await self.get(schedule_id, user_id)) from None
        return schedule.describe(cancelled)

    def tell_time(self, at: datetime, agent: Agent) -> str:
        """Say when something will be: absolute with zone, and relative."""
        return tell_time(at, agent, self._clock.now())

    async def _book(self, wake: Wake, agent: Agent, now: datetime) -> BookedSchedule:
        await self._wakes.book(wake)
        config = wake.session_config or {}
        model = config.get("model") or agent.model or self._default_model
        ignored = session_config.ignored_keys(config, model)
        warning = f"Ignored, because {model!r} takes none: {', '.join(ignored)}." if ignored else None
        return BookedSchedule(
            schedule=schedule.describe(wake), told=tell_time(wake.nominal_at, agent, now), warning=warning
        )

    def _models_of(self, agent: Agent) -> set[str]:
        return {agent.model or self._default_model, *agent.allowed_models}

    async def _skills_for(self, request: ScheduleRequest, agent: Agent) -> Sequence[Skill]:
        return await self._skills_of(agent) if session_config.names_skills(request.session_config) else ()


async def _find(tx: Tx, schedule_id: str, user_id: str) -> Wake:
    wake_id = schedule.wake_id_of(schedule_id)
    if not ids.could_be_id(wake_id):
        raise schedule.NoSuchSchedule(schedule_id)
    try:
        wake = await tx.wakes.read(wake_id, user_id)
    except NoSuchWake:
        raise schedule.NoSuchSchedule(schedule_id) from None
    if not is_schedule(wake):
        raise schedule.NoSuchSchedule(schedule_id)
    return wake


async def _show(tx: Tx, wake: Wake) -> Schedule:
    if wake.status == "pending":
        return schedule.describe(wake)
    runs = await tx.runs.of_wake(wake.id, 1)  # what a person ran again later is none of the schedule's
    if not runs:
        return schedule.describe(wake)
    has_arrived = wake.status == "failed" and bool(await tx.sessions.steps_of(runs[0].id))
    return schedule.describe(wake, runs[0], has_arrived=has_arrived)
