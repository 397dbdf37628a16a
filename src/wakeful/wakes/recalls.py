"""Book, show, change, skip, cancel and run the recall of a session."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from wakeful.agents.rules import within
from wakeful.core import ids
from wakeful.core.errors import Unavailable
from wakeful.core.labels import Via, stamp, stamp_booked
from wakeful.core.outside import ActingRun
from wakeful.core.texts import first_words
from wakeful.core.types import Agent, ClaimedRun, Run, Session, Wake
from wakeful.database.service import AgentData
from wakeful.sessions.messages import agent_of, read_own
from wakeful.store.base import Base
from wakeful.store.sessions import NoSuchSession
from wakeful.store.store import Tx
from wakeful.timing import brief, recall_request
from wakeful.timing.recall_request import RecallRequest
from wakeful.toolbox.registry import ToolCatalog
from wakeful.wakes.service import WakeService, describe_time, edit_as_asked, find_visible

_LISTED = 50
_CANCELLED_AT_ONCE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Booked:
    """A saved recall, its time as text, and a warning about its instructions."""

    wake: Wake
    told: str  # its time: absolute with zone, and relative
    warning: str | None = None
    is_repeated: bool = False  # an earlier request of the same program booked it


class Recalls:
    def __init__(self, base: Base, wakes: WakeService, catalog: ToolCatalog, data: AgentData) -> None:
        self._store = base.store
        self._wakes = wakes
        self._clock = base.clock
        self._rules = base.rules
        self._catalog = catalog
        self._data = data

    async def book_in_run(
        self, request: RecallRequest, run: ClaimedRun, agent: Agent, only: Collection[str] | None = None
    ) -> Booked:
        """Book a recall for an agent from inside a run. Its instructions must pass the check of briefs."""
        now = self._clock.now()
        tools = within(self._catalog.names_for(agent), only)
        wake = recall_request.make(
            request, agent, run.session_id, run.user_id, now, self._rules, by="agent", booked_by_run=run.id, tools=tools
        )
        tables = await self._tables_of(agent)
        if tables is not None:
            brief.check_brief(request.additional_context_message, tools=tools, tables=tables)
        return Booked(wake=await self._wakes.book(stamp_booked(wake, run)), told=_time_words(wake, agent, now))

    async def book(self, request: RecallRequest, session_id: str, user_id: str, via: Via | None = None) -> Booked:
        """Book a recall for a user. Doubtful instructions get a warning."""
        agent = await self._store.read(lambda tx: agent_of(tx, session_id, user_id))
        return await self._book(request, agent, session_id, via)

    async def book_in_new_session(self, request: RecallRequest, agent: Agent, via: Via | None) -> Booked:
        """Book a recall for a user, and open its session in the same transaction."""
        now = self._clock.now()
        session = Session(
            id=ids.new_id(now),
            agent_id=agent.id,
            user_id=agent.user_id,
            title=first_words(request.internal_comment or request.additional_context_message),
            created_at=now,
            updated_at=now,
        )
        return await self._book(request, agent, session.id, via, opening=session)

    async def _book(
        self,
        request: RecallRequest,
        agent: Agent,
        session_id: str,
        via: Via | None,
        opening: Session | None = None,
    ) -> Booked:
        now = self._clock.now()
        made = stamp(recall_request.make(request, agent, session_id, agent.user_id, now, self._rules, by="user"), via)
        tables, problem = await self._tables_of(agent), None
        if tables is not None:
            problem = brief.find_problem(
                request.additional_context_message, tools=self._catalog.names_for(agent), tables=tables
            )
        wake = await self._wakes.book(made, key=None if via is None else via.key, opening=opening)
        warning = None if problem is None else problem.warning
        told = _time_words(wake, agent, now)
        return Booked(wake=wake, told=told, warning=warning, is_repeated=wake.id != made.id)

    def describe_time(self, at: datetime, agent: Agent) -> str:
        """Return a time as text: absolute with zone, and relative."""
        return describe_time(at, agent, self._clock.now())

    async def pending(self, session_id: str, user_id: str) -> Wake | None:
        """Return the pending recall of a session."""
        return await read_own(self._store, session_id, user_id, lambda tx: tx.wakes.in_slot(f"session:{session_id}"))

    async def listed(self, session_id: str, user_id: str, *, by: ActingRun | None = None) -> list[Wake]:
        """Return the latest recalls of a session, ended ones included, the newest first."""

        async def work(tx: Tx) -> list[Wake]:
            return await find_visible(tx, by, await tx.wakes.of_session(session_id, _LISTED, door="recall"))

        return await read_own(self._store, session_id, user_id, work)

    async def edit(self, session_id: str, user_id: str, asked: Mapping[str, Any]) -> Wake:
        """Change the pending recall of a session, in one transaction."""
        now = self._clock.now()

        async def work(tx: Tx) -> Wake:
            await tx.sessions.get(session_id, user_id)
            wake = await tx.wakes.live_in_slot(f"session:{session_id}")
            if wake is None:
                raise recall_request.NoRecall(session_id)
            return await edit_as_asked(tx, wake, asked, now, self._rules)

        return await self._store.write(work)

    async def cancel(self, session_id: str, user_id: str, *, by: ActingRun | None = None) -> Wake | None:
        """Cancel the pending recall of a session. None if there is none."""
        wake = await self.pending(session_id, user_id)
        return None if wake is None else await self._wakes.cancel(wake.id, wake.user_id, by=by)

    async def skip(self, session_id: str, user_id: str, *, by: ActingRun | None = None) -> Wake:
        wake = await self.pending(session_id, user_id)
        if wake is None or not wake.is_recurring:
            raise recall_request.NotRecurring(session_id)
        return await self._wakes.skip(wake.id, wake.user_id, by=by)

    async def run_now(self, session_id: str, user_id: str, via: Via | None = None) -> Run:
        wake = await self.pending(session_id, user_id)
        if wake is None:
            raise recall_request.NoRecall(session_id)
        return await self._wakes.run_now(wake.id, wake.user_id, via)

    async def cancel_forgotten(self, days: int) -> int:
        """Cancel recurring recalls that had no change, and whose session had no message, by a user for these days."""
        now = self._clock.now()
        before = now - timedelta(days=days)
        found = await self._store.read(lambda tx: tx.wakes.forgotten_recalls(before, _CANCELLED_AT_ONCE))
        for wake_id in found:
            await self._wakes.cancel_forgotten(wake_id, before, days)
        return len(found)

    async def reach(self, session_id: str, run: Run) -> str:
        """Return the user of a session that a run may reach: one of its own user or, for an owner, anyone's."""
        if not ids.could_be_id(session_id):
            raise recall_request.OutOfReach(session_id)

        async def work(tx: Tx) -> str:
            user = await tx.agents.user(run.user_id)
            found = await tx.sessions.find(session_id) if user is not None and user.role == "owner" else None
            return (found or await tx.sessions.get(session_id, run.user_id)).user_id

        try:
            return await self._store.read(work)
        except NoSuchSession:
            raise recall_request.OutOfReach(session_id) from None

    async def _tables_of(self, agent: Agent) -> list[str] | None:
        """Return the tables and views that a brief may name; None if the database is unavailable."""
        try:
            tables, views = await self._data.names(agent)
        except Unavailable:  # booking matters more than the check of its instructions
            return None
        return [*tables, *views]


def _time_words(wake: Wake, agent: Agent, now: datetime) -> str:
    at = describe_time(wake.nominal_at, agent, now)
    if wake.call_type != "immediate":
        return f"at {at}"
    return f"right after this run, at {at}" if wake.scheduled_by == "agent" else f"at once, at {at}"
