"""What agents and people may ask of a session's schedules."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime

from wakeful.clock import Clock
from wakeful.domain import schedules, session_config
from wakeful.domain.duration import format_duration
from wakeful.domain.rules import Rules
from wakeful.domain.schedules import Schedule, ScheduleRequest, ScheduleStatus
from wakeful.domain.types import Agent, Run, Wake
from wakeful.domain.wakes import WakeNotLive, is_schedule
from wakeful.domain.zones import load_zone
from wakeful.service.wakes import WakeService
from wakeful.store.store import Store, Tx
from wakeful.store.wakes import NoSuchWake

_READ = 1_000  # wakes of one session; recalls are among them


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
        default_model: str,
    ) -> None:
        self._store = store
        self._wakes = wakes
        self._clock = clock
        self._rules = rules
        self._tools_of = tools_of  # the names of the tools an agent is shown
        self._default_model = default_model

    async def book_in_run(
        self, request: ScheduleRequest, run: Run, agent: Agent, only: Collection[str] | None = None
    ) -> BookedSchedule:
        """Book what an agent asks for from inside a run. A fresh session never has more tools than that run has."""
        assert run.session_id is not None
        now = self._clock.now()
        tools = [name for name in self._tools_of(agent) if only is None or name in only]
        wake = schedules.make(
            request,
            agent,
            run.session_id,
            run.user_id,
            now,
            self._rules,
            models=self._models_of(agent),
            tools=tools,
            by="agent",
            booked_by_run=run.id,
        )
        if only is not None and wake.session_config is not None and "tool_ids" not in wake.session_config:
            wake = replace(wake, session_config={**wake.session_config, "tool_ids": tools})
        return await self._book(wake, agent, now)

    async def book(self, request: ScheduleRequest, session_id: str, user_id: str) -> BookedSchedule:
        """Book what a person asks for."""
        now = self._clock.now()

        async def look(tx: Tx) -> Agent:
            session = await tx.sessions.get(session_id, user_id)
            return await tx.agents.get(session.agent_id, user_id)

        agent = await self._store.read(look)
        wake = schedules.make(
            request,
            agent,
            session_id,
            user_id,
            now,
            self._rules,
            models=self._models_of(agent),
            tools=self._tools_of(agent),
            by="user",
        )
        return await self._book(wake, agent, now)

    async def listed(
        self, session_id: str, user_id: str, *, status: ScheduleStatus | None = None, most: int = 50
    ) -> list[Schedule]:
        """Return the schedules of a session, ended ones included, the newest first."""

        async def work(tx: Tx) -> list[Schedule]:
            await tx.sessions.get(session_id, user_id)
            found = [wake for wake in await tx.wakes.of_session(session_id, _READ) if is_schedule(wake)]
            shown: list[Schedule] = []
            for wake in found:
                if status is not None and schedules.show(wake).status not in (status, "failed"):
                    continue  # no need to look closer: only what failed may have arrived all the same
                schedule = await _show(tx, wake)
                if status in (None, schedule.status):
                    shown.append(schedule)
                if len(shown) == most:
                    break
            return shown

        return await self._store.read(work)

    async def pending(self, session_id: str, user_id: str) -> list[Schedule]:
        """Return what still waits in a session, the soonest first."""

        async def work(tx: Tx) -> list[Schedule]:
            await tx.sessions.get(session_id, user_id)
            found = [wake for wake in await tx.wakes.of_session(session_id, _READ) if is_schedule(wake)]
            found.sort(key=lambda wake: (wake.nominal_at, wake.created_at, wake.id))
            return [await _show(tx, wake) for wake in found if wake.is_live]

        return await self._store.read(work)

    async def get(self, schedule_id: str, user_id: str) -> Schedule:
        async def work(tx: Tx) -> Schedule:
            return await _show(tx, await _find(tx, schedule_id, user_id))

        return await self._store.read(work)

    async def cancel(self, schedule_id: str, user_id: str, session_id: str | None = None) -> Schedule:
        """Cancel what has not been delivered; with a session, only one that was booked there."""
        wake = await self._store.read(lambda tx: _find(tx, schedule_id, user_id))
        if session_id not in (None, wake.session_id):
            raise schedules.NoSuchSchedule(schedule_id)
        try:
            cancelled = await self._wakes.cancel(wake.id, user_id)
        except WakeNotLive:
            raise schedules.NotCancellable(await self.get(schedule_id, user_id)) from None
        return schedules.show(cancelled)

    def tell_time(self, at: datetime, agent: Agent) -> str:
        """Say when something will be: absolute with zone, and relative."""
        return _tell_time(at, agent, self._clock.now())

    async def _book(self, wake: Wake, agent: Agent, now: datetime) -> BookedSchedule:
        await self._wakes.book(wake)
        config = wake.session_config or {}
        model = config.get("model") or agent.model or self._default_model
        ignored = session_config.ignored_keys(config, model)
        warning = f"Ignored, because {model!r} takes none: {', '.join(ignored)}." if ignored else None
        return BookedSchedule(
            schedule=schedules.show(wake), told=_tell_time(wake.nominal_at, agent, now), warning=warning
        )

    def _models_of(self, agent: Agent) -> set[str]:
        return {self._default_model, agent.model or self._default_model}


async def _find(tx: Tx, schedule_id: str, user_id: str) -> Wake:
    wake_id = schedules.wake_id_of(schedule_id)
    if not wake_id.replace("-", "").isalnum():  # what is no id at all may not even be fit to be asked for
        raise schedules.NoSuchSchedule(schedule_id)
    try:
        wake = await tx.wakes.read(wake_id, user_id)
    except NoSuchWake:
        raise schedules.NoSuchSchedule(schedule_id) from None
    if not is_schedule(wake):
        raise schedules.NoSuchSchedule(schedule_id)
    return wake


async def _show(tx: Tx, wake: Wake) -> Schedule:
    if wake.status == "pending":
        return schedules.show(wake)
    runs = await tx.runs.of_wake(wake.id, 1)  # what a person ran again later is none of the schedule's
    if not runs:
        return schedules.show(wake)
    has_arrived = wake.status == "failed" and bool(await tx.sessions.steps_of(runs[0].id))
    return schedules.show(wake, runs[0], has_arrived=has_arrived)


def _tell_time(at: datetime, agent: Agent, now: datetime) -> str:
    local = at.astimezone(load_zone(agent.timezone))
    ahead = f"in {format_duration(at - now)}" if at > now else "due now"
    return f"at {local:%Y-%m-%d %H:%M:%S} {agent.timezone} ({ahead})"
