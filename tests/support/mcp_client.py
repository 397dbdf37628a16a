"""The real MCP client, connected to a server of ours with a token."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from live_server import Server

ERAS = ("legacy", "2026-07-28")  # the initialize handshake, and a request that says everything itself


@asynccontextmanager
async def connected(server: Server, token: str | None = None, *, mode: str = "auto", **more: Any) -> AsyncIterator[Any]:
    """Connect the SDK's client to /mcp."""
    # Its import takes seconds, which other tests need not wait for.
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    headers = {"Authorization": f"Bearer {token or server.token}"}
    async with create_mcp_http_client(headers=headers) as http:
        transport = streamable_http_client(f"{server.address}/mcp", http_client=http)
        async with Client(transport, mode=mode, cache=None, **more) as client:
            yield client


def text_of(result: Any) -> str:
    """Return the text of a tool's result."""
    return "\n".join(part.text for part in result.content)


async def make_token(server: Server, scope: str, name: str = "laptop") -> str:
    return (await server.call("POST", "/tokens", json={"name": name, "scope": scope}))["secret"]


@asynccontextmanager
async def held(server: Server, token: str, mode: str) -> AsyncIterator[Any]:
    """Hold a client open for a fixture, in a task of its own: the client must be closed by the task that opened it."""
    ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def hold() -> None:
        async with connected(server, token, mode=mode) as client:
            ready.set_result(client)
            await over.wait()

    holding = asyncio.create_task(hold())
    await asyncio.wait((ready, holding), return_when=asyncio.FIRST_COMPLETED)
    try:
        yield ready.result() if ready.done() else holding.result()
    finally:
        over.set()
        await holding
