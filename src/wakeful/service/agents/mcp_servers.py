"""MCP servers that run unconfined because they were configured before 0.2."""

from collections.abc import Mapping

from wakeful.domain.agents.mcp_servers import McpServer
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
