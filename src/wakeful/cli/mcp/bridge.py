"""The bridge of `wakeful mcp`: an MCP server on stdin and stdout that passes every call on to a server's /mcp."""

import asyncio
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, cast

from wakeful.cli.remote.connection import tls_context
from wakeful.cli.remote.target import Target

if TYPE_CHECKING:
    from mcp import Client

_READ_SECONDS = 300.0  # a call waits for at most four minutes


def run_bridge(target: Target, token: str, token_name: str) -> None:
    """Serve until stdin is closed."""
    asyncio.run(_Bridge(target, token, token_name).serve())


class _Bridge:
    def __init__(self, target: Target, token: str, token_name: str) -> None:
        self._target = target
        self._token = token
        self._token_name = token_name

    async def serve(self) -> None:
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client
        from mcp.server.lowlevel import Server
        from mcp.server.stdio import stdio_server
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        async with self._http() as http:
            transport = streamable_http_client(f"{self._target.url}/mcp", http_client=http)
            # With a version that needs no handshake the server need not run yet.
            async with Client(transport, mode=MODERN_PROTOCOL_VERSIONS[-1], cache=None) as client:
                server: Server[Any] = Server(
                    "wakeful",
                    version=version("wakeful"),
                    title="Wakeful",
                    on_list_tools=lambda _context, _params: self._list(client),
                    on_call_tool=lambda context, params: self._call(client, context, params),
                )
                async with stdio_server() as (incoming, outgoing):
                    await server.run(incoming, outgoing, server.create_initialization_options())

    def _http(self) -> Any:
        import httpx2

        return httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {self._token}"},
            timeout=httpx2.Timeout(30.0, read=_READ_SECONDS),
            verify=tls_context(self._target) or False,
            trust_env=False,
        )

    async def _list(self, client: "Client") -> Any:
        from mcp.shared.exceptions import MCPError
        from mcp_types import INTERNAL_ERROR

        try:
            return await client.list_tools()
        except MCPError:
            raise
        except Exception as error:  # whatever happened, the program gets the reason
            raise MCPError(INTERNAL_ERROR, self._explain(error)) from error

    async def _call(self, client: "Client", context: Any, params: Any) -> Any:
        from mcp.shared.exceptions import MCPError
        from mcp_types import CallToolResult, TextContent

        try:
            return await client.call_tool(
                params.name, params.arguments, progress_callback=context.session.report_progress
            )
        except MCPError:
            raise
        except Exception as error:  # noqa: BLE001  (as above; the bridge outlives a server that is restarted)
            return CallToolResult(content=[TextContent(text=self._explain(error))], is_error=True)

    def _explain(self, error: BaseException) -> str:
        while isinstance(error, BaseExceptionGroup):
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
        if "401" in str(error):
            return (
                f"The server refused the token {self._token_name!r} of this program: it was revoked. Start the program "
                "again after `wakeful mcp config`, or delete mcp-tokens.json in the config directory to get a new one."
            )
        return (
            f"No Wakeful server answers at {self._target.url} ({type(error).__name__}). Start it with `wakeful serve`."
        )
