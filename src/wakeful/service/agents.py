"""Users and agents, as far as the engine needs them."""

from dataclasses import replace

from wakeful.clock import Clock
from wakeful.domain import bounds as bounds_rule
from wakeful.domain.types import Agent, User
from wakeful.domain.zones import load_zone
from wakeful.store.store import Store, Tx


class AgentService:
    """Make and change agents."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def add_user(self, user: User) -> User:
        await self._store.write(lambda tx: tx.agents.add_user(user))
        return user

    async def add(self, agent: Agent) -> Agent:
        _check(agent)
        await self._store.write(lambda tx: tx.agents.add(agent))
        return agent

    async def get(self, agent_id: str, user_id: str) -> Agent:
        return await self._store.read(lambda tx: tx.agents.get(agent_id, user_id))

    async def save(self, agent: Agent) -> Agent:
        """Save changed settings; what waits because of the old bounds is looked at again."""
        _check(agent)
        now = self._clock.now()
        changed = replace(agent, updated_at=now)

        async def work(tx: Tx) -> Agent:
            await tx.agents.save(changed)
            await tx.wakes.release_held(agent.user_id, agent.id, now)
            return changed

        return await self._store.write(work)


def _check(agent: Agent) -> None:
    load_zone(agent.timezone)
    bounds_rule.check_bounds(agent.bounds)
