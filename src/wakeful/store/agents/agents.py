"""Users, agents and pauses in the store."""

from collections.abc import Sequence
from datetime import datetime

from wakeful.domain.errors import NotFound
from wakeful.domain.news import AgentChanged, RunQueued
from wakeful.domain.types import Agent, Pause, User
from wakeful.store.drivers.database import Row, Statements
from wakeful.store.rows import AGENTS, PAUSES, USERS, to_micros


class NoSuchAgent(NotFound):
    code = "no_such_agent"

    def __init__(self, agent_id: str) -> None:
        super().__init__(f"There is no agent {agent_id!r}. `wakeful agent ls` and GET /agents list yours.")


class AgentRows:
    """Statements about users, agents and pauses, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add_user(self, user: User) -> None:
        await self._statements.fetch("add_user", USERS.write(user))

    async def user(self, user_id: str) -> User | None:
        return USERS.read_first(await self._statements.fetch("user_by_id", {"id": user_id}))

    async def delete_user(self, user_id: str, now: datetime) -> bool:
        return bool(await self._statements.fetch("delete_user", {"id": user_id, "now": to_micros(now)}))

    async def add(self, agent: Agent) -> None:
        await self._statements.fetch("add_agent", AGENTS.write(agent))
        self._announce(agent)

    async def add_first(self, agent: Agent) -> bool:
        """Add an agent for a user who has never had one. False if there is one."""
        is_added = bool(await self._statements.fetch_many("add_first_agent", [AGENTS.write(agent)]))
        if is_added:
            self._announce(agent)
        return is_added

    async def delete(self, agent_id: str, now: datetime) -> None:
        for row in await self._statements.fetch("delete_agent", {"id": agent_id, "now": to_micros(now)}):
            self._statements.news.append(AgentChanged(agent_id, row["user_id"]))

    async def ended(self) -> list[str]:
        """Return the ids of those that were deleted."""
        return [str(row["id"]) for row in await self._statements.fetch("ended_agents", {})]

    async def save_changelog_head(self, agent_id: str, entry: int, digest: str) -> None:
        await self._statements.fetch("save_changelog_head", {"agent_id": agent_id, "entry": entry, "hash": digest})

    async def changelog_head(self, agent_id: str) -> tuple[int, str] | None:
        """Return the last entry of an agent's changelog that is known of, and its hash."""
        rows = await self._statements.fetch("changelog_head", {"agent_id": agent_id})
        return (rows[0]["entry"], rows[0]["hash"]) if rows else None

    async def forget_changelog_head(self, agent_id: str) -> None:
        await self._statements.fetch("forget_changelog_head", {"agent_id": agent_id})

    async def of_anyone(self, agent_id: str) -> Agent:
        """Return an agent, for the host's own work."""
        return _one(await self._statements.fetch("agent_by_id", {"id": agent_id}), agent_id)

    async def get(self, agent_id: str, user_id: str) -> Agent:
        return _one(await self._statements.fetch("agent_of_user", {"id": agent_id, "user_id": user_id}), agent_id)

    async def lock(self, agent_id: str, user_id: str) -> Agent:
        """Read an agent in order to change it."""
        return _one(await self._statements.fetch("lock_agent_of_user", {"id": agent_id, "user_id": user_id}), agent_id)

    async def of_user(self, user_id: str) -> list[Agent]:
        return AGENTS.read_all(await self._statements.fetch("agents_of_user", {"user_id": user_id}))

    async def save(self, agent: Agent) -> None:
        if not await self._statements.fetch("save_agent", AGENTS.write(agent)):
            raise NoSuchAgent(agent.id)
        self._announce(agent)

    async def add_pause(self, pause: Pause) -> None:
        await self._statements.fetch("add_pause", PAUSES.write(pause))
        await self._announce_pause(pause.user_id, pause.agent_id)

    async def end_pauses(self, user_id: str, agent_id: str | None, now: datetime) -> int:
        """Lift an agent's own pauses; without an agent, those of everything."""
        params = {"user_id": user_id, "agent_id": agent_id, "now": to_micros(now)}
        ended = await self._statements.fetch("end_pauses", params)
        if ended:
            self._statements.news.append(RunQueued())  # what had queued before the pause is free to start
            await self._announce_pause(user_id, agent_id)
        return len(ended)

    async def pauses_made_after(self, at: datetime) -> list[Pause]:
        """Return the pauses that begin after an instant: a wrong clock made them."""
        return PAUSES.read_all(await self._statements.fetch("pauses_made_after", {"at": to_micros(at)}))

    async def move_pause(self, pause: Pause) -> None:
        await self._statements.fetch("move_pause", PAUSES.write(pause))
        await self._announce_pause(pause.user_id, pause.agent_id)

    async def pauses_since(self, since: datetime) -> list[Pause]:
        return PAUSES.read_all(await self._statements.fetch("pauses_since", {"since": to_micros(since)}))

    async def all_pauses_of(self, user_id: str, since: datetime) -> list[Pause]:
        """Return the pauses of all agents of a user, and those of everything."""
        params = {"user_id": user_id, "since": to_micros(since)}
        return PAUSES.read_all(await self._statements.fetch("pauses_of_user", params))

    async def pauses_of(self, user_id: str, agent_id: str | None, since: datetime) -> list[Pause]:
        """Return the pauses of an agent and those of everything; without an agent, only the latter."""
        params = {"user_id": user_id, "agent_id": agent_id, "since": to_micros(since)}
        return PAUSES.read_all(await self._statements.fetch("pauses_of_agent", params))

    def _announce(self, agent: Agent) -> None:
        self._statements.news.append(AgentChanged(agent.id, agent.user_id))

    async def _announce_pause(self, user_id: str, agent_id: str | None) -> None:
        if agent_id is not None:
            self._statements.news.append(AgentChanged(agent_id, user_id))
        else:
            await announce_agents_of(self._statements, user_id)


async def announce_agents_of(statements: Statements, user_id: str) -> None:
    """Leave the news that something changed which concerns every agent of a user."""
    rows = await statements.fetch("agent_ids_of_user", {"user_id": user_id})
    statements.news.extend(AgentChanged(row["id"], user_id) for row in rows)


def _one(rows: Sequence[Row], agent_id: str) -> Agent:
    if not rows:
        raise NoSuchAgent(agent_id)
    return AGENTS.read(rows[0])
