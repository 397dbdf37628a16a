"""Book, show, change, skip, cancel and run the recall of a session."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from wakeful.clock import Clock
from wakeful.domain import ids
from wakeful.domain.agents.agents import within
from wakeful.domain.bounds.limits import Rules
from wakeful.domain.doors import brief, recall
from wakeful.domain.doors.recall import RecallRequest
from wakeful.domain.errors import Unavailable
from wakeful.domain.types import Agent, Run, ScheduledBy, Session, Wake
from wakeful.service.wakes.time_words import tell_time
from wakeful.service.wakes.wakes import WakeService, edit
from wakeful.store.sessions.sessions import NoSuchSession
from wakeful.store.store import Store, Tx

_LISTED = 50
_FORGOTTEN_AT_ONCE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Booked:
    """A recall that is durable, its time in words, and what people should know about its text."""

    wake: Wake
    told: str  # absolute with zone, and relative
    warning: str | None = None


class Recalls:
    """Book, show, change, skip, cancel and run the recall of a session."""

    def __init__(
        self,
        store: Store,
        wakes: WakeService,
        clock: Clock,
        rules: Rules,
        tools_of: Callable[[Agent], Collection[str]],
        names_of: Callable[[Agent], Awaitable[tuple[Collection[str], Collection[str]]]],
    ) -> None:
        self._store = store
        self._tools_of = tools_of  # the names of the tools an agent is shown
        self._names_of = names_of  # the names of the tables and the views in its database
        self._wakes = wakes
        self._clock = clock
        self._rules = rules

    async def book_in_run(
        self, request: RecallRequest, run: Run, agent: Agent, only: Collection[str] | None = None
    ) -> Booked:
        """Book what an agent asks for from inside a run. Its text must say what to do, and with what."""
        assert run.session_id is not None
        now = self._clock.now()
        tools = within(self._tools_of(agent), only)
        wake = recall.make(
            request, agent, run.session_id, run.user_id, now, self._rules, by="agent", booked_by_run=run.id, tools=tools
        )
        tables = await self._tables_of(agent)
        if tables is not None:
            brief.check_brief(request.additional_context_message, tools=tools, tables=tables)
        return Booked(wake=await self._wakes.book(wake), told=_time_words(wake, agent, now))

    async def book(self, request: RecallRequest, session_id: str, user_id: str) -> Booked:
        """Book what a person asks for. Their text is theirs; a doubtful one gets a warning."""
        now = self._clock.now()

        async def look(tx: Tx) -> tuple[Session, Agent]:
            session = await tx.sessions.get(session_id, user_id)
            return session, await tx.agents.get(session.agent_id, user_id)

        _, agent = await self._store.read(look)
        wake = recall.make(request, agent, session_id, user_id, now, self._rules, by="user")
        tables = await self._tables_of(agent)
        problem = (
            None
            if tables is None
            else brief.find_problem(request.additional_context_message, tools=self._tools_of(agent), tables=tables)
        )
        await self._wakes.book(wake)
        return Booked(
            wake=wake, told=_time_words(wake, agent, now), warning=None if problem is None else problem.warning
        )

    def tell_time(self, at: datetime, agent: Agent) -> str:
        """Say when something is or was to be: absolute with zone, and relative."""
        return tell_time(at, agent, self._clock.now())

    async def pending(self, session_id: str, user_id: str) -> Wake | None:
        """Return the recall that waits in a session."""

        async def work(tx: Tx) -> Wake | None:
            await tx.sessions.get(session_id, user_id)
            return await tx.wakes.in_slot(f"session:{session_id}")

        return await self._store.read(work)

    async def listed(self, session_id: str, user_id: str) -> list[Wake]:
        """Return the latest recalls of a session, ended ones included, the newest first."""

        async def work(tx: Tx) -> list[Wake]:
            await tx.sessions.get(session_id, user_id)
            return await tx.wakes.of_session(session_id, _LISTED, door="recall")

        return await self._store.read(work)

    async def edit(self, session_id: str, user_id: str, asked: Mapping[str, Any]) -> Wake:
        """Change the recall that waits in a session, in one transaction."""
        now = self._clock.now()

        async def work(tx: Tx) -> Wake:
            await tx.sessions.get(session_id, user_id)
            wake = await tx.wakes.live_in_slot(f"session:{session_id}")
            if wake is None:
                raise recall.NoRecall(session_id)
            agent = await tx.agents.get(wake.agent_id, wake.user_id)
            changes, wish = recall.read_changes(asked, wake, now, agent.known_zone)
            return await edit(tx, wake, changes, wish, now, self._rules)

        return await self._store.write(work)

    async def cancel(self, session_id: str, user_id: str) -> Wake | None:
        """Cancel the recall that waits in a session. None if there is none."""
        wake = await self.pending(session_id, user_id)
        return None if wake is None else await self._wakes.cancel(wake.id, wake.user_id)

    async def skip(self, session_id: str, user_id: str, *, by: ScheduledBy = "user") -> Wake:
        wake = await self.pending(session_id, user_id)
        if wake is None or not wake.is_recurring:
            raise recall.NotRecurring(session_id)
        return await self._wakes.skip(wake.id, wake.user_id, by=by)

    async def run_now(self, session_id: str, user_id: str) -> Run:
        wake = await self.pending(session_id, user_id)
        if wake is None:
            raise recall.NoRecall(session_id)
        return await self._wakes.run_now(wake.id, wake.user_id)

    async def forget(self, days: int) -> int:
        """End the recurring recalls that no person wrote beside, booked or changed for so many days."""
        now = self._clock.now()
        before = now - timedelta(days=days)
        found = await self._store.read(lambda tx: tx.wakes.forgotten_recalls(before, _FORGOTTEN_AT_ONCE))
        for wake_id in found:
            await self._wakes.forget(wake_id, before, days)
        return len(found)

    async def reach(self, session_id: str, run: Run) -> str:
        """Return whose session it is that a run's user wants to reach: their own, or anyone's if they are an owner."""

        if not ids.could_be_id(session_id):
            raise recall.OutOfReach(session_id)

        async def work(tx: Tx) -> str:
            user = await tx.agents.user(run.user_id)
            found = await tx.sessions.find(session_id) if user is not None and user.role == "owner" else None
            return (found or await tx.sessions.get(session_id, run.user_id)).user_id

        try:
            return await self._store.read(work)
        except NoSuchSession:
            raise recall.OutOfReach(session_id) from None

    async def _tables_of(self, agent: Agent) -> list[str] | None:
        """Return what an agent's database has that its brief may name; None: it cannot be asked just now."""
        try:
            tables, views = await self._names_of(agent)
        except Unavailable:  # a booking is worth more than the check of its words
            return None
        return [*tables, *views]


def _time_words(wake: Wake, agent: Agent, now: datetime) -> str:
    told = tell_time(wake.nominal_at, agent, now)
    if wake.call_type != "immediate":
        return f"at {told}"
    return f"right after this run, at {told}" if wake.scheduled_by == "agent" else f"at once, at {told}"
