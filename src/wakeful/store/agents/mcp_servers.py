"""MCP servers in the store: those whose programs run unconfined, and the tools that each had at its last start."""

from collections.abc import Mapping

import orjson

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


class McpTools:
    """Statements about the tools of MCP servers, and stored names of tools, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def of(self, server: str) -> dict[str, str] | None:
        """Return the fingerprints of the tools that a server had at its last start; None: it was never started."""
        rows = await self._statements.fetch("tools_of_mcp_server", {"server": server})
        return orjson.loads(rows[0]["tools"]) if rows else None

    async def save(self, server: str, tools: Mapping[str, str]) -> None:
        await self._statements.fetch("save_mcp_tools", {"server": server, "tools": orjson.dumps(tools).decode()})

    async def take_upgrade(self) -> bool:
        """Check whether this is the first start after the upgrade; true on one node only."""
        return bool(await self._statements.fetch("drop_mcp_tools", {"server": _ALL}))

    async def agents_with_servers(self) -> list[str]:
        return [row["id"] for row in await self._statements.fetch("agents_with_mcp_servers", {})]

    async def drop_name(self, agent_id: str, tool: str) -> set[str]:
        """Drop a tool's name from limits of an agent's wakes, sessions and hooks, and from what people have allowed it.

        Returns the places where it was.
        """
        quoted = {"agent_id": agent_id, "quoted": f'"{tool}"'}
        named = {"agent_id": agent_id, "tool": tool}
        places: set[str] = set()
        for name, params in (
            ("drop_tool_of_wakes", quoted),
            ("drop_tool_of_sessions", quoted),
            ("drop_tool_of_hooks", quoted),
            ("drop_tool_of_allowances", named),
            ("drop_tool_of_approvals", named),
        ):
            places |= {row["place"] for row in await self._statements.fetch(name, params)}
        for row in await self._statements.fetch("session_configs_with", quoted):
            config = orjson.loads(row["session_config"])
            if tool in config.get("tool_ids", ()):
                config["tool_ids"].remove(tool)
                saved = {"id": row["id"], "session_config": orjson.dumps(config).decode()}
                await self._statements.fetch("save_session_config", saved)
                places.add("scheduled sessions")
        return places
