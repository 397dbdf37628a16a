"""Create, change, list and delete agents, and hand a session over to another one."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from wakeful.agents import rules
from wakeful.agents.rules import asks_before
from wakeful.config.settings import Settings
from wakeful.core import ids
from wakeful.core.budget import Spent
from wakeful.core.clock import Clock
from wakeful.core.events import ProfileSwitched
from wakeful.core.types import Agent, ClaimedRun, Session, User
from wakeful.database.files import AgentFiles
from wakeful.models.catalog import ModelCatalog
from wakeful.runs.claims import cancel_wake
from wakeful.runs.stopping import Departures
from wakeful.sessions.service import SessionBusy
from wakeful.store.base import Base
from wakeful.store.store import Store, Tx
from wakeful.store.wakes import Gone
from wakeful.timing.bounds import PRESETS, local_day_start
from wakeful.timing.next_run_request import SelfSchedulingOff
from wakeful.toolbox.registry import ToolCatalog

_PAGE = 1_000
_OFF = "self_scheduling_off"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageToday:
    """Tokens and cost that an agent has used today."""

    agent: Agent
    since: datetime
    spent: Spent


class AgentService:
    def __init__(
        self,
        base: Base,
        settings: Settings,
        files: AgentFiles,
        departures: Departures,
        catalog: ToolCatalog,
        models: ModelCatalog,
    ) -> None:
        self._store = base.store
        self._clock = base.clock
        self._settings = settings
        self._run_limit = timedelta(seconds=settings.run_limit_seconds)
        self._files = files
        self._departures = departures
        self._catalog = catalog
        self._models = models

    def _known(self) -> rules.Known:
        """Return the tools, MCP servers and models that an agent's settings can name."""
        return rules.Known(
            mcp_servers=self._settings.mcp,
            tools=self._catalog.toolset_of(),
            models=self._models.names,
            database_mb=self._settings.agent_database_mb,
        )

    async def add_user(self, user: User) -> User:
        await self._store.write(lambda tx: tx.agents.add_user(user))
        return user

    async def add(self, agent: Agent) -> Agent:
        rules.check(agent, self._known())

        async def work(tx: Tx) -> Agent:
            await _check_profiles(tx, agent)
            await _check_subagents(tx, agent, known={agent.id})
            await tx.agents.add(agent)
            return await tx.agents.get(agent.id, agent.user_id)

        return await self._store.write(work)

    async def make(self, user: User, name: str, changes: Mapping[str, Any] | None = None) -> Agent:
        """Create an agent with the defaults and these changes."""
        made = replace(self._new(user, name), **(changes or {}))
        rules.check_grants(user, None, made, self._known())
        return await self.add(made)

    def _new(self, user: User, name: str) -> Agent:
        now = self._clock.now()
        return Agent(
            id=ids.new_id(now),
            user_id=user.id,
            name=name,
            toolsets=rules.NEW_TOOLSETS,
            self_scheduling=False,
            bounds=PRESETS["reactive"],
            run_limit=self._run_limit,
            created_at=now,
            updated_at=now,
        )

    async def make_first(self, user: User) -> Agent | None:
        """Create a new user's first agent, if they never had one. Two nodes that start at once create one."""
        first = replace(
            self._new(user, "Wakeful"),
            id=ids.first_agent_of(user.id),
            subagents=(ids.first_agent_of(user.id),),  # so that a new user can try a subagent
            description="A helper that can come back by itself.",
            toolsets=rules.FIRST_TOOLSETS,
            self_scheduling=True,
        )

        return first if await self._store.write(lambda tx: tx.agents.add_first(first)) else None

    async def get(self, agent_id: str, user_id: str) -> Agent:
        return await self._store.read(lambda tx: tx.agents.get(agent_id, user_id))

    async def check_self_scheduling(self, agent: Agent) -> None:
        """Refuse an agent whose self-scheduling is off now, even if it was on when its run began."""
        if not (await self.get(agent.id, agent.user_id)).self_scheduling:
            raise SelfSchedulingOff(agent)

    async def of_user(self, user_id: str) -> list[Agent]:
        return await self._store.read(lambda tx: tx.agents.of_user(user_id))

    async def usage(self, agent_id: str, user_id: str) -> UsageToday:
        """Return what an agent has used since midnight in its zone."""
        now = self._clock.now()

        async def work(tx: Tx) -> UsageToday:
            agent = await tx.agents.get(agent_id, user_id)
            since = local_day_start(now, agent.zone)
            return UsageToday(agent=agent, since=since, spent=await tx.usage.of_agent(agent_id, since))

        return await self._store.read(work)

    async def change(self, agent_id: str, user: User, change: Callable[[Agent], Mapping[str, Any]]) -> Agent:
        """Change some settings of an agent, which `change` makes from the agent as it is then."""

        async def work(tx: Tx) -> Agent:
            before = await tx.agents.lock(agent_id, user.id)
            changes = change(before)
            after = replace(before, **changes)
            if "timezone" in changes:
                after = replace(after, offers_zone=False)
            rules.check_grants(user, before, after, self._known())
            return await self._save(tx, before, after)

        return await self._store.write(work)

    async def _save(self, tx: Tx, before: Agent, after: Agent) -> Agent:
        """Save changed settings, and decide again about wakes that the old bounds held.

        Turning self-scheduling off cancels what the agent booked; turning it on changes Manual to Ambient.
        """
        now = self._clock.now()
        rules.check(after, self._known(), before)
        await _check_profiles(tx, after, before)
        await _check_subagents(tx, after, known={after.id, *before.subagents})
        changed = replace(after, updated_at=now)
        if changed.self_scheduling and not before.self_scheduling and changed.bounds.mode == "manual":
            changed = replace(changed, bounds=PRESETS["ambient"])
        await tx.agents.save(changed)
        if before.self_scheduling and not changed.self_scheduling:
            await _end_own_bookings(tx, changed, now)
        await tx.wakes.release_held(after.user_id, after.id, now)
        return changed

    async def delete(self, agent_id: str, user_id: str) -> int:
        """Delete an agent: cancel its live wakes, stop its runs, destroy its database. Its sessions stay readable.

        Return how many wakes are left, which do not fire: the engine cancels them.
        """
        now = self._clock.now()

        async def work(tx: Tx) -> tuple[Agent, int]:
            agent = await tx.agents.get(agent_id, user_id)
            await tx.agents.delete(agent_id, now)
            await tx.hooks.delete_of_agent(agent_id)
            return agent, await self._departures.begin(tx, Gone(user_id=user_id, agent_id=agent_id), now)

        agent, left = await self._store.write(work)
        if left:
            self._departures.left.set()
        await self._files.erase_deleted(agent)
        return left


async def _check_profiles(tx: Tx, agent: Agent, before: Agent | None = None) -> None:
    """Refuse a profile that does not exist or belongs to someone else, without saying which."""
    added = set(agent.profiles) - set(() if before is None else before.profiles)
    if not added:
        return
    own = {each.id for each in await tx.agents.of_user(agent.user_id)}
    for agent_id in sorted(added):
        if agent_id not in own:
            raise rules.BadAgent(
                f"You have no agent {agent_id!r}. `wakeful agent ls` and GET /agents list their ids.",
                field="profiles",
            )


async def _check_subagents(tx: Tx, agent: Agent, known: Collection[str]) -> None:
    """Refuse a subagent that is not this user's; one that was listed before may have been deleted."""
    for each in agent.subagents:
        if each not in known:
            await tx.agents.get(each, agent.user_id)


async def _end_own_bookings(tx: Tx, agent: Agent, now: datetime) -> None:
    """Cancel the agent's next run and everything else it booked; other bookings of people stay."""
    after: tuple[datetime, str] | None = None
    while live := await tx.wakes.of_user(agent.user_id, agent_id=agent.id, is_live=True, after=after, most=_PAGE):
        after = (live[-1].nominal_at, live[-1].id)
        for each in live:
            if each.kind == "next_run" or each.scheduled_by == "agent":
                wake = await tx.wakes.get(each.id)
                if wake.is_live:  # else another node has fired it since
                    await cancel_wake(tx, wake, _OFF, now, run_reason=_OFF)


class Profiles:
    """Switches the agent of a session. Live wakes stay with the agent that booked them."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def switch(self, run: ClaimedRun, agent: Agent, asked: str, tools: Collection[str]) -> Agent:
        """Hand a run's session over to an agent that the user listed, limited to the tools of this run."""

        async def work(tx: Tx) -> Agent:
            # Read again: the user may have removed a profile from the list meanwhile.
            listed = (await tx.agents.get(agent.id, run.user_id)).profiles
            others = [each for each in await tx.agents.of_user(run.user_id) if each.id in listed]
            chosen = rules.find_profile(asked, others)
            session = await tx.sessions.get(run.session_id, run.user_id)
            # The other agent may not use without approval what this one needs approval for.
            free = [name for name in tools if not asks_before(agent, name) or asks_before(chosen, name)]
            limit = rules.narrow_profile(free, session.tool_limit)
            await tx.sessions.hand_over(run.session_id, run.user_id, chosen.id, tuple(limit))
            return chosen

        return await self._store.write(work)

    async def choose(self, session_id: str, user_id: str, agent_id: str) -> Session:
        """Hand a session over to the agent that the user chose, with all of its tools."""
        now = self._clock.now()

        async def work(tx: Tx) -> Session:
            session = await tx.sessions.get(session_id, user_id)
            agent = await tx.agents.get(agent_id, user_id)
            if (session.agent_id, session.tool_limit) == (agent_id, None):
                return session
            busy = await tx.runs.unfinished_in(session_id)
            if busy is not None:
                raise SessionBusy(busy)
            changed = await tx.sessions.hand_over(session_id, user_id, agent_id, None)
            tx.say(session_id, [ProfileSwitched(profile_id=agent.id, profile_name=agent.name)], now)
            return changed

        return await self._store.write(work)
