"""MCP servers whose programs run unconfined, in the store."""

from wakeful.store.drivers.database import Statements

_ALL = "*"  # set by the migration: the names that the settings file has at the next start


class UnconfinedMcpServers:
    """Statements about programs from before they could be confined, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def names(self) -> frozenset[str]:
        rows = await self._statements.fetch("unconfined_mcp_servers", {})
        return frozenset(row["name"] for row in rows) - {_ALL}

    async def take_upgrade(self) -> bool:
        """Check whether this is the first start after the upgrade; true on one node only."""
        return bool(await self._statements.fetch("drop_unconfined_mcp_server", {"name": _ALL}))

    async def add(self, name: str) -> None:
        await self._statements.fetch("add_unconfined_mcp_server", {"name": name})

    async def drop(self, name: str) -> None:
        await self._statements.fetch("drop_unconfined_mcp_server", {"name": name})
