"""A line to an MCP server at an address, over streamable HTTP."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
from mcp.client._transport import TransportStreams  # has no public name yet
from mcp.client.streamable_http import streamable_http_client

from wakeful.domain.mcp_servers import McpServer

CONNECT_SECONDS = 10.0


@asynccontextmanager
async def reached(server: McpServer) -> AsyncGenerator[TransportStreams]:
    """Speak to it with the headers that the settings file gives."""
    assert server.url is not None
    # Silence is measured by whoever calls; the client only gives up on connecting.
    timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
    async with (
        httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout) as client,
        streamable_http_client(server.url, http_client=client) as line,
    ):
        yield line
