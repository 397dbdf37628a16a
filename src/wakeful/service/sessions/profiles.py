"""Handing a session over to another agent."""

from collections.abc import Collection

from wakeful.clock import Clock
from wakeful.domain.agents import profiles
from wakeful.domain.agents.agents import asks_before
from wakeful.domain.events import ProfileSwitched
from wakeful.domain.runs.runs import SessionBusy
from wakeful.domain.types import Agent, ClaimedRun, Session
from wakeful.service.agents.directories import Directories
from wakeful.store.store import Store, Tx


class Profiles:
    """Switches the agent of a session. Live wakes stay with the agent that booked them."""

    def __init__(self, store: Store, clock: Clock, directories: Directories) -> None:
        self._store = store
        self._directories = directories
        self._clock = clock

    async def switch(self, run: ClaimedRun, agent: Agent, asked: str, tools: Collection[str]) -> Agent:
        """Hand a run's session over to an agent that the user listed, limited to the tools of this run."""

        async def work(tx: Tx) -> Agent:
            # Read again: the user may have removed a profile from the list meanwhile.
            listed = (await tx.agents.get(agent.id, run.user_id)).profiles
            others = [each for each in await tx.agents.of_user(run.user_id) if each.id in listed]
            chosen = profiles.find(asked, others)
            await self._directories.check_here(tx, chosen.id)
            session = await tx.sessions.get(run.session_id, run.user_id)
            # The other agent may not use without approval what this one needs approval for.
            free = [name for name in tools if not asks_before(agent, name) or asks_before(chosen, name)]
            limit = profiles.narrow(free, session.tool_limit)
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
