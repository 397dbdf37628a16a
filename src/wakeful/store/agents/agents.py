"""Users, agents and pauses in the store."""

from datetime import datetime

from wakeful.domain.errors import NotFound
from wakeful.domain.types import Agent, Pause, User
from wakeful.store.drivers.database import Statements
from wakeful.store.rows import AGENTS, PAUSES, USERS, to_micros


class NoSuchAgent(NotFound):
    code = "no_such_agent"

    def __init__(self, agent_id: str) -> None:
        super().__init__(f"There is no agent {agent_id!r}. `wakeful agent ls` and GET /agents list yours.")


class AgentRows:
    """Statements about who works and for whom, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add_user(self, user: User) -> None:
        await self._statements.fetch("add_user", USERS.write(user))

    async def user(self, user_id: str) -> User | None:
        rows = await self._statements.fetch("user_by_id", {"id": user_id})
        return USERS.read(rows[0]) if rows else None

    async def delete_user(self, user_id: str, now: datetime) -> bool:
        return bool(await self._statements.fetch("delete_user", {"id": user_id, "now": to_micros(now)}))

    async def add(self, agent: Agent) -> None:
        await self._statements.fetch("add_agent", AGENTS.write(agent))

    async def add_first(self, agent: Agent) -> bool:
        """Add an agent for a user who has never had one. False if there is one."""
        return bool(await self._statements.fetch_many("add_first_agent", [AGENTS.write(agent)]))

    async def delete(self, agent_id: str, now: datetime) -> None:
        await self._statements.fetch("delete_agent", {"id": agent_id, "now": to_micros(now)})

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

    async def get(self, agent_id: str, user_id: str) -> Agent:
        rows = await self._statements.fetch("agent_of_user", {"id": agent_id, "user_id": user_id})
        if not rows:
            raise NoSuchAgent(agent_id)
        return AGENTS.read(rows[0])

    async def of_user(self, user_id: str) -> list[Agent]:
        return [AGENTS.read(row) for row in await self._statements.fetch("agents_of_user", {"user_id": user_id})]

    async def save(self, agent: Agent) -> None:
        if not await self._statements.fetch("save_agent", AGENTS.write(agent)):
            raise NoSuchAgent(agent.id)

    async def add_pause(self, pause: Pause) -> None:
        await self._statements.fetch("add_pause", PAUSES.write(pause))

    async def end_pauses(self, user_id: str, agent_id: str | None, now: datetime) -> int:
        """Lift an agent's own pauses; without an agent, those of everything."""
        params = {"user_id": user_id, "agent_id": agent_id, "now": to_micros(now)}
        ended = await self._statements.fetch("end_pauses", params)
        if ended:
            self._statements.tell("runs")  # what had queued before the pause is free to start
        return len(ended)

    async def pauses_made_after(self, at: datetime) -> list[Pause]:
        """Return the pauses that begin after an instant: a wrong clock made them."""
        return [PAUSES.read(row) for row in await self._statements.fetch("pauses_made_after", {"at": to_micros(at)})]

    async def move_pause(self, pause: Pause) -> None:
        await self._statements.fetch("move_pause", PAUSES.write(pause))

    async def pauses_since(self, since: datetime) -> list[Pause]:
        return [PAUSES.read(row) for row in await self._statements.fetch("pauses_since", {"since": to_micros(since)})]

    async def pauses_of(self, user_id: str, agent_id: str | None, since: datetime) -> list[Pause]:
        """Return the pauses of an agent and those of everything; without an agent, only the latter."""
        params = {"user_id": user_id, "agent_id": agent_id, "since": to_micros(since)}
        return [PAUSES.read(row) for row in await self._statements.fetch("pauses_of_agent", params)]
