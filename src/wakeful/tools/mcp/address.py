"""A line to an MCP server at an address, over streamable HTTP."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp.client._transport import TransportStreams  # has no public name yet
from mcp.client.streamable_http import streamable_http_client

from wakeful.domain.agents.mcp_servers import McpServer

CONNECT_SECONDS = 10.0
MOST_ANSWER = 4 * 1024 * 1024  # bytes of one message


@asynccontextmanager
async def reached(server: McpServer) -> AsyncGenerator[TransportStreams]:
    """Speak to it with the headers that the settings file gives."""
    assert server.url is not None
    # Silence is measured by whoever calls; the client only gives up on connecting.
    timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
    async with (
        httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout, event_hooks={"response": [_bound]}) as client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=MOST_ANSWER) as line,
    ):
        yield line


async def _bound(response: httpx2.Response) -> None:
    """Let an answer be read only as far as it may go. In a stream of events each event is bounded by itself."""
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
            if size > MOST_ANSWER:
                raise httpx2.ReadError(f"the answer has more than {MOST_ANSWER:,} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
