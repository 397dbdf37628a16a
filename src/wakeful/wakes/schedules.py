"""Book, list, show and cancel the schedules of a session."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from wakeful.agents.instruction_files import InstructionFiles
from wakeful.agents.rules import within
from wakeful.core import ids
from wakeful.core.labels import TOOL, Via, stamp, stamp_booked
from wakeful.core.outside import ActingRun
from wakeful.core.types import Agent, ClaimedRun, Wake, is_schedule
from wakeful.models.catalog import ModelCatalog
from wakeful.sessions.messages import agent_of
from wakeful.store.base import Base
from wakeful.store.store import Tx
from wakeful.store.wakes import NoSuchWake
from wakeful.timing import schedule_request, session_config
from wakeful.timing.lifecycle import WakeNotLive
from wakeful.timing.schedule_request import Schedule, ScheduleRequest, ScheduleStatus
from wakeful.toolbox.registry import ToolCatalog
from wakeful.wakes.service import WakeService, describe_time, find_visible

_READ = 200  # at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class BookedSchedule:
    """A saved schedule, its time as text, and a warning about settings without effect."""

    schedule: Schedule
    wake: Wake
    told: str  # its time: absolute with zone, and relative
    warning: str | None = None
    is_repeated: bool = False  # an earlier request of the same program booked it


class Schedules:
    def __init__(
        self,
        base: Base,
        wakes: WakeService,
        catalog: ToolCatalog,
        instructions: InstructionFiles,
        models: ModelCatalog,
    ) -> None:
        self._store = base.store
        self._wakes = wakes
        self._clock = base.clock
        self._rules = base.rules
        self._catalog = catalog
        self._instructions = instructions
        self._models = models

    async def book_in_run(
        self, request: ScheduleRequest, run: ClaimedRun, agent: Agent, only: Collection[str] | None = None
    ) -> BookedSchedule:
        """Book a schedule for an agent from inside a run. The run that it wakes never has more tools than this one."""
        tools = within(self._catalog.names_for(agent), only)
        return await self._book(request, agent, run.session_id, tools, self._clock.now(), TOOL, run)

    async def book(
        self, request: ScheduleRequest, session_id: str, user_id: str, via: Via | None = None
    ) -> BookedSchedule:
        now = self._clock.now()
        agent = await self._store.read(lambda tx: agent_of(tx, session_id, user_id))
        # The tools of an MCP server are known once it has started. A run has started it; for a user we may have to.
        problems = (
            await self._catalog.prepare(agent) if session_config.names_tool_of(agent, request.session_config) else ()
        )
        try:
            return await self._book(request, agent, session_id, self._catalog.names_for(agent), now, via)
        except session_config.BadSessionConfig as error:
            error.hint = " ".join(problems) or None
            raise

    async def book_for_agent(
        self, request: ScheduleRequest, agent: Agent, session_id: str | None, via: Via | None
    ) -> BookedSchedule:
        """Book a session of an agent for a user, from no session or from one of theirs."""
        return await self._book(request, agent, session_id, self._catalog.names_for(agent), self._clock.now(), via)

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
                    if status is not None and schedule_request.describe(wake).status not in (status, "failed"):
                        continue  # only a failed wake may have been delivered all the same
                    found_one = await _show(tx, wake)
                    if status in (None, found_one.status):
                        shown.append(found_one)
                    if len(shown) == most:
                        return shown
                last = found[-1].created_at, found[-1].id
            return shown

        return await self._store.read(work)

    async def pending(self, session_id: str, user_id: str, *, by: ActingRun | None = None) -> list[Schedule]:
        """Return the pending schedules of a session, the soonest first."""

        async def work(tx: Tx) -> list[Schedule]:
            await tx.sessions.get(session_id, user_id)
            live = await tx.wakes.of_session(session_id, _READ, door="scheduler", is_live=True)
            found = await find_visible(tx, by, live)
            found.sort(key=lambda wake: (wake.nominal_at, wake.created_at, wake.id))
            return [await _show(tx, wake) for wake in found]

        return await self._store.read(work)

    async def get(self, schedule_id: str, user_id: str) -> Schedule:
        async def work(tx: Tx) -> Schedule:
            return await _show(tx, await _find(tx, schedule_id, user_id))

        return await self._store.read(work)

    async def cancel(
        self, schedule_id: str, user_id: str, session_id: str | None = None, *, by: ActingRun | None = None
    ) -> Schedule:
        """Cancel a schedule that was not delivered yet; with a session, only one that was booked there."""
        wake = await self._store.read(lambda tx: _find(tx, schedule_id, user_id))
        if session_id not in (None, wake.session_id):
            raise schedule_request.NoSuchSchedule(schedule_id)
        try:
            cancelled = await self._wakes.cancel(wake.id, user_id, by=by)
        except WakeNotLive:
            raise schedule_request.NotCancellable(await self.get(schedule_id, user_id)) from None
        return schedule_request.describe(cancelled)

    def describe_time(self, at: datetime, agent: Agent) -> str:
        """Return a time as text: absolute with zone, and relative."""
        return describe_time(at, agent, self._clock.now())

    async def _book(
        self,
        request: ScheduleRequest,
        agent: Agent,
        session_id: str | None,
        tools: Collection[str],
        now: datetime,
        via: Via | None,
        run: ClaimedRun | None = None,
    ) -> BookedSchedule:
        wants_skills = session_config.names_skills(request.session_config)
        made = schedule_request.make(
            request,
            agent,
            session_id,
            agent.user_id,
            now,
            self._rules,
            models={agent.model or self._models.default, *agent.allowed_models},
            tools=tools,
            skills=await self._instructions.skills_of(agent) if wants_skills else (),
            by="user" if run is None else "agent",
            booked_by_run=None if run is None else run.id,
        )
        stamped = stamp(made, via) if run is None else stamp_booked(made, run)
        wake = await self._wakes.book(stamped, key=None if via is None else via.key)
        config = wake.session_config or {}
        model = config.get("model") or agent.model or self._models.default
        ignored = session_config.ignored_keys(config, self._models.provider_string(model))
        warning = f"The model {model!r} ignores: {', '.join(ignored)}." if ignored else None
        return BookedSchedule(
            schedule=schedule_request.describe(wake),
            wake=wake,
            told=describe_time(wake.nominal_at, agent, now),
            warning=warning,
            is_repeated=wake.id != made.id,
        )


async def _find(tx: Tx, schedule_id: str, user_id: str) -> Wake:
    wake_id = schedule_request.wake_id_of(schedule_id)
    if not ids.could_be_id(wake_id):
        raise schedule_request.NoSuchSchedule(schedule_id)
    try:
        wake = await tx.wakes.read(wake_id, user_id)
    except NoSuchWake:
        raise schedule_request.NoSuchSchedule(schedule_id) from None
    if not is_schedule(wake):
        raise schedule_request.NoSuchSchedule(schedule_id)
    return wake


async def _show(tx: Tx, wake: Wake) -> Schedule:
    if wake.status == "pending":
        return schedule_request.describe(wake)
    runs = await tx.runs.of_wake(wake.id, 1)  # runs that a user started again later do not belong to the schedule
    if not runs:
        return schedule_request.describe(wake)
    has_arrived = wake.status == "failed" and bool(await tx.sessions.steps_of(runs[0].id))
    return schedule_request.describe(wake, runs[0], has_arrived=has_arrived)
