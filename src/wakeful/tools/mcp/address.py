"""The streamable HTTP transport to an MCP server."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp.client.streamable_http import streamable_http_client

from wakeful.domain.agents.mcp_servers import McpServer
from wakeful.tools.mcp.connection import Streams

CONNECT_SECONDS = 10.0
MAX_ANSWER = 4 * 1024 * 1024  # bytes of one message


@asynccontextmanager
async def reached(server: McpServer) -> AsyncGenerator[Streams]:
    """Connect, with the headers of the settings file."""
    assert server.url is not None
    # Each call has its own timeout; the client itself only limits connecting.
    timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
    async with (
        httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout, event_hooks={"response": [_bound]}) as client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=MAX_ANSWER) as transport,
    ):
        yield transport


async def _bound(response: httpx2.Response) -> None:
    """Limit the size of a response body. In an event stream, the transport limits each event."""
    is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
    if not is_stream and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > MAX_ANSWER:
                raise httpx2.ReadError(f"the answer has more than {MAX_ANSWER:,} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
