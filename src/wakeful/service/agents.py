"""Agents: make, change, list, delete."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from wakeful.clock import Clock
from wakeful.domain import agents as rules
from wakeful.domain import ids, wakes
from wakeful.domain.bounds import PRESETS
from wakeful.domain.types import Agent, Decision, User
from wakeful.store.store import Store, Tx

_PAGE = 1_000
_OFF = "self_scheduling_off"


class AgentService:
    """Make and change agents."""

    def __init__(
        self, store: Store, clock: Clock, run_limit: timedelta, erase: Callable[[Agent], Awaitable[None]]
    ) -> None:
        self._store = store
        self._clock = clock
        self._run_limit = run_limit
        self._erase = erase  # destroys an agent's own database

    async def add_user(self, user: User) -> User:
        await self._store.write(lambda tx: tx.agents.add_user(user))
        return user

    async def add(self, agent: Agent) -> Agent:
        rules.check(agent)

        async def work(tx: Tx) -> Agent:
            await tx.agents.add(agent)
            tx.tell(f"agent {agent.id} {agent.user_id}")
            return agent

        return await self._store.write(work)

    async def make(self, user: User, name: str, changes: Mapping[str, Any] | None = None) -> Agent:
        """Make an agent with the defaults of a new one, but for what is said."""
        now = self._clock.now()
        agent = Agent(
            id=ids.new_id(now),
            user_id=user.id,
            name=name,
            toolsets=rules.NEW_TOOLSETS,
            timezone="UTC",
            self_scheduling=False,
            bounds=PRESETS["reactive"],
            run_limit=self._run_limit,
            created_at=now,
            updated_at=now,
        )
        made = replace(agent, **(changes or {}))
        rules.check_grants(user, (), made.toolsets)
        return await self.add(made)

    async def make_first(self, user: User, timezone: str) -> Agent | None:
        """Make the agent a newcomer meets, if this user has none at all. Two nodes that start at once make one."""
        now = self._clock.now()
        first = Agent(
            id=ids.first_agent_of(user.id),
            user_id=user.id,
            name="Wakeful",
            description="A helper that can come back by itself.",
            toolsets=rules.FIRST_TOOLSETS,
            timezone=timezone,
            self_scheduling=True,
            bounds=PRESETS["reactive"],
            run_limit=self._run_limit,
            created_at=now,
            updated_at=now,
        )

        async def work(tx: Tx) -> Agent | None:
            return first if await tx.agents.add_first(first) else None

        return await self._store.write(work)

    async def get(self, agent_id: str, user_id: str) -> Agent:
        return await self._store.read(lambda tx: tx.agents.get(agent_id, user_id))

    async def of_user(self, user_id: str) -> list[Agent]:
        return await self._store.read(lambda tx: tx.agents.of_user(user_id))

    async def change(self, agent_id: str, user: User, changes: Mapping[str, Any]) -> Agent:
        """Change some settings of an agent."""
        before = await self.get(agent_id, user.id)
        after = replace(before, **changes)
        rules.check_grants(user, before.toolsets, after.toolsets)
        return await self.save(after)

    async def save(self, agent: Agent) -> Agent:
        """Save changed settings; what waits because of the old bounds is looked at again.

        Self-scheduling that is switched off takes along what the agent booked; switched on, Manual becomes Ambient.
        """
        rules.check(agent)
        now = self._clock.now()

        async def work(tx: Tx) -> Agent:
            before = await tx.agents.get(agent.id, agent.user_id)
            changed = replace(agent, updated_at=now)
            if changed.self_scheduling and not before.self_scheduling and changed.bounds.mode == "manual":
                changed = replace(changed, bounds=PRESETS["ambient"])
            await tx.agents.save(changed)
            if before.self_scheduling and not changed.self_scheduling:
                await _end_own_bookings(tx, changed, now)
            await tx.wakes.release_held(agent.user_id, agent.id, now)
            tx.tell(f"agent {agent.id} {agent.user_id}")
            return changed

        return await self._store.write(work)

    async def delete(self, agent_id: str, user_id: str) -> None:
        """End an agent: its live wakes are cancelled, its runs stopped, its database destroyed.

        Its sessions can still be read.
        """
        now = self._clock.now()

        async def work(tx: Tx) -> Agent:
            agent = await tx.agents.get(agent_id, user_id)
            while live := await tx.wakes.of_user(user_id, agent_id=agent_id, most=_PAGE, is_live=True):
                for wake in live:
                    await tx.runs.end_queued_of_wake(wake.id, "skipped", "agent_gone", now)
                    await tx.wakes.move([wakes.cancel(wake, "agent_gone", now)])
            for status in ("queued", "running"):
                for run in await tx.runs.of_user(user_id, agent_id=agent_id, status=status, most=_PAGE):
                    await tx.runs.end_queued(run.id, "stopped", "agent_gone", now)
                    await tx.runs.request_stop(run.id, now)
            await tx.agents.delete(agent_id, now)
            tx.tell(f"agent {agent_id} {user_id}")
            return agent

        await self._erase(await self._store.write(work))


async def _end_own_bookings(tx: Tx, agent: Agent, now: datetime) -> None:
    """Clear the next-run slot, whoever booked it, and end what the agent booked elsewhere; people's own stays."""
    after: tuple[datetime, str] | None = None
    while live := await tx.wakes.of_user(agent.user_id, agent_id=agent.id, is_live=True, after=after, most=_PAGE):
        after = (live[-1].nominal_at, live[-1].id)
        for each in live:
            if each.kind == "next_run" or each.scheduled_by == "agent":
                await _turn_off(tx, each.id, now)


async def _turn_off(tx: Tx, wake_id: str, now: datetime) -> None:
    wake = await tx.wakes.get(wake_id)
    if not wake.is_live:  # another node has begun it since
        return
    await tx.runs.end_queued_of_wake(wake_id, "skipped", _OFF, now)
    await tx.wakes.move([wakes.cancel(wake, _OFF, now)])
    said = Decision(wake_id=wake_id, nominal_at=wake.nominal_at, at=now, code="cancelled", detail={"reason": _OFF})
    await tx.notices.record([said])
    tx.tell(f"wake {wake_id}")
