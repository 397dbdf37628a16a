"""The bridge of `wakeful mcp`: an MCP server on stdin and stdout that passes every call on to a server's /mcp."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, cast

from wakeful.cli.server import tls_context
from wakeful.cli.target import Target

if TYPE_CHECKING:
    from mcp import Client


_READ_SECONDS = 300.0  # a call waits for at most four minutes


def run_bridge(target: Target, token_name: str) -> None:
    """Serve until stdin is closed."""
    asyncio.run(_Bridge(target, token_name).serve())


class _Bridge:
    def __init__(self, target: Target, token_name: str) -> None:
        self._target = target
        self._token_name = token_name
        self._is_refused = False  # the last response was 401: the token was revoked

    async def serve(self) -> None:
        from mcp.server.lowlevel import Server
        from mcp.server.stdio import stdio_server

        server: Server[Any] = Server(
            "wakeful",
            version=version("wakeful"),
            title="Wakeful",
            on_list_tools=lambda _context, _params: self._list(),
            on_call_tool=self._call,
        )
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    @asynccontextmanager
    async def _connected(self) -> "AsyncGenerator[Client]":
        """Connect for one call: a connection that failed cannot be used again, and the server may be restarted."""
        import httpx2
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        http = httpx2.AsyncClient(
            headers={"Authorization": self._target.authorize()},
            timeout=httpx2.Timeout(30.0, read=_READ_SECONDS),
            verify=tls_context(self._target) or False,
            trust_env=False,
            event_hooks={"response": [self._note_status]},
        )
        async with http:
            transport = streamable_http_client(f"{self._target.url}/mcp", http_client=http)
            # With a version that needs no handshake.
            async with Client(transport, mode=MODERN_PROTOCOL_VERSIONS[-1], cache=None) as client:
                yield client

    async def _list(self) -> Any:
        from mcp.shared.exceptions import MCPError
        from mcp_types import INTERNAL_ERROR

        try:
            async with self._connected() as client:
                return await client.list_tools()
        except Exception as error:  # whatever happened, the program gets the reason
            raise MCPError(INTERNAL_ERROR, self._explain(error)) from error

    async def _call(self, context: Any, params: Any) -> Any:
        from mcp.shared.exceptions import MCPError
        from mcp_types import CallToolResult, TextContent

        progress = context.session.report_progress
        try:
            async with self._connected() as client:
                try:
                    return await client.call_tool(params.name, params.arguments, progress_callback=progress)
                except MCPError as error:  # the server's own words, such as those about an unknown tool
                    text = self._explain(error) if self._is_refused else error.message
                    return CallToolResult(content=[TextContent(text=text)], is_error=True)
        except Exception as error:  # noqa: BLE001  (as above; the bridge outlives a server that is restarted)
            return CallToolResult(content=[TextContent(text=self._explain(error))], is_error=True)

    async def _note_status(self, response: Any) -> None:
        self._is_refused = response.status_code == HTTPStatus.UNAUTHORIZED

    def _explain(self, error: BaseException) -> str:
        while isinstance(error, BaseExceptionGroup):
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
        if self._is_refused:
            return (
                f"The server refused the token {self._token_name!r} of this program: it was revoked. Start the program "
                "again after `wakeful mcp config`, or delete mcp-tokens.json in the config directory to get a new one."
            )
        return (
            f"No Wakeful server answers at {self._target.url} ({type(error).__name__}). Start it with `wakeful serve`."
        )
