"""In the store: which contents of the files that instruct an agent were accepted by a person."""

from datetime import datetime

from wakeful.store.drivers.database import Statements
from wakeful.store.rows import to_micros


class InstructionFileRows:
    """Statements about accepted contents, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def accept(self, agent_id: str, path: str, digest: str, now: datetime) -> None:
        params = {"agent_id": agent_id, "path": path, "digest": digest, "now": to_micros(now)}
        await self._statements.fetch("accept_file", params)

    async def accepted(self, agent_id: str) -> set[tuple[str, str]]:
        """Return path and digest of every accepted content of an agent's files."""
        rows = await self._statements.fetch("accepted_files", {"agent_id": agent_id})
        return {(row["path"], row["digest"]) for row in rows}

    async def agents_to_compare(self) -> list[str]:
        """Return the agents of an earlier version whose present files count as accepted."""
        return [row["id"] for row in await self._statements.fetch("agents_without_compared_files", {})]

    async def mark_compared(self, agent_id: str) -> None:
        await self._statements.fetch("mark_files_compared", {"agent_id": agent_id})
