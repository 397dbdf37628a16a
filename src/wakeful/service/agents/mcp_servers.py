"""MCP servers: which run unconfined, stored names of tools that may be theirs, and changes of their tools."""

from collections.abc import Mapping

from wakeful.clock import Clock
from wakeful.domain.agents.agents import foreign_names
from wakeful.domain.agents.mcp_servers import McpServer
from wakeful.domain.inbox import notices
from wakeful.store.store import Store, Tx


async def settle_unconfined(store: Store, servers: Mapping[str, McpServer]) -> frozenset[str]:
    """Return the names of servers that run unconfined although their entry does not say so.

    The first start after the upgrade records every program whose entry does not say whether it is confined. A name is
    removed for good once its entry says so; a confined program never becomes unconfined again by itself.
    """

    async def work(tx: Tx) -> frozenset[str]:
        programs = {name: server for name, server in servers.items() if server.kind == "stdio"}
        if await tx.unconfined_mcp_servers.take_upgrade():
            for name, server in programs.items():
                if server.is_limited is None:
                    await tx.unconfined_mcp_servers.add(name)
        for name in await tx.unconfined_mcp_servers.names():
            if name in programs and programs[name].is_limited is not None:
                await tx.unconfined_mcp_servers.drop(name)
        return await tx.unconfined_mcp_servers.names()

    return await store.write(work)


async def settle_tool_names(store: Store, clock: Clock, toolset_of: Mapping[str, str | None]) -> None:
    """Drop stored names that 0.2 used for a tool of an MCP server, and that mean another tool now.

    The first start after the upgrade does so. `toolset_of` are the toolsets of the built-in tools.
    """
    now = clock.now()

    async def work(tx: Tx) -> None:
        if not await tx.mcp_tools.take_upgrade():
            return
        for agent_id in await tx.mcp_tools.agents_with_servers():
            agent = await tx.agents.of_anyone(agent_id)
            found = {tool: await tx.mcp_tools.drop_name(agent_id, tool) for tool in foreign_names(agent, toolset_of)}
            dropped = sorted(tool for tool, places in found.items() if places)
            if dropped:
                places = sorted({place for places in found.values() for place in places})
                await tx.notices.add(notices.tools_dropped(agent, dropped, places, now))

    await store.write(work, is_long=True)


async def note_tools(store: Store, clock: Clock, server: str, tools: Mapping[str, str]) -> None:
    """Save the fingerprints of a server's tools, and notify owners if they differ from those of its last start."""
    now = clock.now()

    async def work(tx: Tx) -> None:
        before = await tx.mcp_tools.of(server)
        if before == tools:
            return
        await tx.mcp_tools.save(server, tools)
        for owner in () if before is None else await tx.accounts.hold_owners():
            await tx.notices.add(notices.mcp_tools_changed(owner, server, before or {}, tools, now))

    await store.write(work, is_repeatable=True)
