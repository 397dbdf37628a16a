"""Runs operations on agents' databases, for tools, routes and prompts."""

from typing import Any

from wakeful.agentdb.errors import DatabaseLocked, DatabaseUnreadable, is_retryable
from wakeful.agentdb.errors import kind_of as error_kind
from wakeful.agentdb.operations import OPERATIONS
from wakeful.domain.agents.directories import MemoryElsewhere
from wakeful.domain.people.accounts import Identity, check_owner, check_scope
from wakeful.domain.types import Agent
from wakeful.service.agents.database_files import AgentFiles, By, Door
from wakeful.store.store import Store

__all__ = ["AgentData", "By", "Door", "error_kind", "is_retryable"]


class AgentData:
    """Runs operations on agents' databases; `agentdb` declares them, with their arguments."""

    def __init__(self, store: Store, files: AgentFiles) -> None:
        self._store = store
        self.files = files
        self.run = files.run
        self.run_numbered = files.run_numbered
        self.run_unparsed = files.run_unparsed

    async def run_for(self, caller: Identity, door: Door, agent_id: str, op: str, /, **args: Any) -> Any:
        """Run an operation for a user, on the database of their agent, if the token's scope allows it."""
        check_scope(caller, OPERATIONS[op].scope)
        return await self.run(await self.person(agent_id, caller.user.id, door), op, **args)

    async def person(self, agent_id: str, user_id: str, door: Door = "command") -> By:
        """Return a user as the caller of operations, after checking that the agent is theirs."""
        return By(agent=await self._store.read(lambda tx: tx.agents.get(agent_id, user_id)), door=door)

    async def show_key(self, by: By, caller: Identity) -> tuple[str, bytes]:
        """Return the path and key of a database, to an owner of this server for an agent of theirs."""
        check_owner(caller)
        return await self.files.show_key(by)

    async def names(self, agent: Agent) -> tuple[list[str], dict[str, list[str]]]:
        """Return the tables of an agent, and its views with their required parameters.

        Both are empty without the toolset, and if the database is locked or in another data directory.
        """
        try:
            return await self._names(agent)
        except MemoryElsewhere:
            return [], {}

    async def views_of(self, agent: Agent) -> dict[str, list[str]]:
        """Return the names of an agent's views, with their required parameters."""
        return (await self._names(agent))[1]

    async def _names(self, agent: Agent) -> tuple[list[str], dict[str, list[str]]]:
        if "database" not in agent.toolsets:
            return [], {}
        try:
            found = await self.run(By(agent=agent, actor="system"), "names")
        except (DatabaseLocked, DatabaseUnreadable):
            return [], {}
        return found["tables"], found["views"]

    async def undo_run(self, run_id: str, user_id: str, door: Door = "command") -> dict[str, Any]:
        """Restore the rows that a run wrote, except those changed since."""
        run = await self._store.read(lambda tx: tx.runs.read(run_id, user_id))
        return await self.run(await self.person(run.agent_id, user_id, door), "undo", run_id=run_id)
