"""Agents: make, change, list, delete."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from wakeful.clock import Clock
from wakeful.domain import ids
from wakeful.domain.agents import agents as rules
from wakeful.domain.bounds.bounds import PRESETS, local_day_start
from wakeful.domain.doors.next_run import SelfSchedulingOff
from wakeful.domain.types import Agent, User
from wakeful.domain.wakes import edits
from wakeful.service.runs.run_endings import end_all
from wakeful.store.runs.usage import Spent
from wakeful.store.store import Store, Tx

_PAGE = 1_000
_OFF = "self_scheduling_off"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageToday:
    """What an agent has used today."""

    agent: Agent
    since: datetime
    spent: Spent


class AgentService:
    """Make and change agents."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        run_limit: timedelta,
        erase: Callable[[Agent], Awaitable[None]],
        known: Callable[[], rules.Known] = rules.Known,
    ) -> None:
        self._store = store
        self._clock = clock
        self._run_limit = run_limit
        self._known = known  # what settings can name
        self._erase = erase  # destroys an agent's own database

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
        """Make an agent with the defaults of a new one, but for what is said."""
        now = self._clock.now()
        agent = Agent(
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
        made = replace(agent, **(changes or {}))
        rules.check_grants(user, None, made, self._known())
        return await self.add(made)

    async def make_first(self, user: User) -> Agent | None:
        """Make the agent a newcomer meets, if this user has none at all. Two nodes that start at once make one."""
        now = self._clock.now()
        first = Agent(
            id=ids.first_agent_of(user.id),
            subagents=(ids.first_agent_of(user.id),),  # so that a newcomer sees one at work
            user_id=user.id,
            name="Wakeful",
            description="A helper that can come back by itself.",
            toolsets=rules.FIRST_TOOLSETS,
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

    async def check_self_scheduling(self, agent: Agent) -> None:
        """Refuse an agent whose self-scheduling is off by now, whatever it was when its run began."""
        if not (await self.get(agent.id, agent.user_id)).self_scheduling:
            raise SelfSchedulingOff(agent)

    async def of_user(self, user_id: str) -> list[Agent]:
        return await self._store.read(lambda tx: tx.agents.of_user(user_id))

    async def usage(self, agent_id: str, user_id: str) -> UsageToday:
        """Return what an agent has used since its midnight, beside what it may use."""
        now = self._clock.now()

        async def work(tx: Tx) -> UsageToday:
            agent = await tx.agents.get(agent_id, user_id)
            since = local_day_start(now, agent.zone)
            return UsageToday(agent=agent, since=since, spent=await tx.usage.of_agent(agent_id, since))

        return await self._store.read(work)

    async def change(self, agent_id: str, user: User, changes: Mapping[str, Any]) -> Agent:
        """Change some settings of an agent; the others keep what someone else has set meanwhile."""

        async def work(tx: Tx) -> Agent:
            before = await tx.agents.lock(agent_id, user.id)
            after = replace(before, **changes)
            if "timezone" in changes:
                after = replace(after, offers_zone=False)
            rules.check_grants(user, before, after, self._known())
            return await self._save(tx, before, after)

        return await self._store.write(work)

    async def save(self, agent: Agent) -> Agent:
        """Save all settings of an agent."""

        async def work(tx: Tx) -> Agent:
            return await self._save(tx, await tx.agents.lock(agent.id, agent.user_id), agent)

        return await self._store.write(work)

    async def _save(self, tx: Tx, before: Agent, after: Agent) -> Agent:
        """Save changed settings; what waits because of the old bounds is looked at again.

        Self-scheduling that is switched off takes along what the agent booked; switched on, Manual becomes Ambient.
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

    async def delete(self, agent_id: str, user_id: str) -> None:
        """End an agent: its live wakes are cancelled, its runs stopped, its database destroyed.

        Its sessions can still be read.
        """
        now = self._clock.now()

        async def work(tx: Tx) -> Agent:
            agent = await tx.agents.get(agent_id, user_id)
            await end_all(tx, user_id, "agent_gone", now, agent_id=agent_id)
            await tx.agents.delete(agent_id, now)
            return agent

        await self._erase(await self._store.write(work))


async def _check_profiles(tx: Tx, agent: Agent, before: Agent | None = None) -> None:
    """Refuse to list an agent that is not there, or is someone else's, without saying which."""
    added = set(agent.profiles) - set(() if before is None else before.profiles)
    if not added:
        return
    own = {each.id for each in await tx.agents.of_user(agent.user_id)}
    for agent_id in sorted(added):
        if agent_id not in own:
            raise rules.BadAgent(
                f"There is no agent {agent_id!r} of yours. `wakeful agent ls` and GET /agents list their ids.",
                field="profiles",
            )


async def _check_subagents(tx: Tx, agent: Agent, known: Collection[str]) -> None:
    """Refuse a subagent that is not this user's own; one that was listed before and is gone does no harm."""
    for each in agent.subagents:
        if each not in known:
            await tx.agents.get(each, agent.user_id)


async def _end_own_bookings(tx: Tx, agent: Agent, now: datetime) -> None:
    """Clear the next-run slot, and end what the agent booked elsewhere; people's other bookings stay."""
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
    after = edits.cancel(wake, _OFF, now)
    await tx.wakes.move([(after, "cancelled")])
    await tx.notices.record([edits.say_cancelled(after, _OFF, now)])
