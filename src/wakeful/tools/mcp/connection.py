"""One connection to an MCP server, held open by a task of its own and shared by all runs that call it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar, cast

from mcp import Client
from mcp_types import CallToolResult, Implementation
from mcp_types import Tool as McpTool

log = logging.getLogger(__name__)

T = TypeVar("T")

Streams = tuple[Any, Any]  # to read messages from and to write them to; the SDK has no public name for their type
# Opens a transport; the callback is called when the server closes it.
OpenTransport = Callable[[Callable[[], None]], AbstractAsyncContextManager[Streams]]

_MAX_PAGES = 100
_CLOSE_SECONDS = 8.0  # stopping a program takes up to three steps of two seconds


class McpConnection:
    """A connection that is opened once and closed once; `is_over` says that it has ended."""

    def __init__(self, open_transport: OpenTransport, most_tools: int) -> None:
        self._open_transport = open_transport
        self._most_tools = most_tools
        self._over = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._calls = 0
        self._is_retired = False
        self.tools: Sequence[McpTool] = ()
        self.is_every_tool_listed = True
        self._task = asyncio.create_task(self._hold())

    @property
    def is_over(self) -> bool:
        return self._over.is_set() or self._task.done()

    async def open(self, seconds: float) -> None:
        """Wait until its tools are known. Raises the cause of a failed start; the caller then closes it."""
        async with asyncio.timeout(seconds):
            await asyncio.shield(self._ready)

    async def call(self, tool: str, arguments: dict[str, Any], seconds: float) -> CallToolResult:
        """Call a tool. After a timeout the connection takes no new calls, and ends with the last running one."""
        client = await self._ready
        self._calls += 1
        try:
            async with asyncio.timeout(seconds):
                return await self._unless_over(client.call_tool(tool, arguments))
        except TimeoutError:
            self._is_retired = True
            raise
        finally:
            self._calls -= 1
            if self._is_retired and not self._calls:
                self._over.set()

    @property
    def is_usable(self) -> bool:
        return not self._is_retired and not self.is_over

    def retire(self) -> None:
        """Take no new calls; end with the last one that is running."""
        self._is_retired = True
        if not self._calls:
            self._over.set()

    async def ended(self) -> None:
        """Wait for its end."""
        await asyncio.wait([self._task])

    async def close(self) -> None:
        """End it now, with the calls that are running."""
        self._over.set()
        if not self._ready.done():
            self._task.cancel()
        await asyncio.wait([self._task], timeout=_CLOSE_SECONDS)
        if self._ready.done() and not self._ready.cancelled():
            self._ready.exception()  # retrieved, so that asyncio does not log it

    async def _unless_over(self, answer: Awaitable[T]) -> T:
        """Wait for an answer; raises ConnectionError if the server ends first."""
        asked = asyncio.ensure_future(answer)
        gone = asyncio.create_task(self._over.wait())
        try:
            await asyncio.wait([asked, gone], return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                raise ConnectionError("the server ended")
            return asked.result()
        finally:
            gone.cancel()
            if not asked.done():
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)  # its error is not needed: the caller has one

    async def _hold(self) -> None:
        """Hold the connection open. Its cancel scopes are bound to a task, so one task opens and closes it."""
        try:
            transport = self._open_transport(self._over.set)
            async with Client(transport, cache=None, client_info=Implementation(name="wakeful", version="1")) as client:
                self.tools = await self._list(client)
                self._ready.set_result(client)
                await self._over.wait()
        except asyncio.CancelledError:
            if not self._ready.done():
                self._ready.cancel()
            raise
        except Exception as error:  # noqa: BLE001  (`open` raises it; after that it is logged)
            if not self._ready.done():
                self._ready.set_exception(_first(error))
            else:  # without its text, which may contain a secret
                log.warning("MCP connection failed", extra={"error": type(_first(error)).__name__})
        finally:
            self._over.set()

    async def _list(self, client: Client) -> list[McpTool]:
        """List its tools, page by page, up to the limit."""
        tools: list[McpTool] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
            if len(tools) > self._most_tools:
                self.is_every_tool_listed = False
                break
        return tools


def _first(error: BaseException) -> Exception:
    """Return the first error inside the exception groups of task groups."""
    if isinstance(error, BaseExceptionGroup):
        return _first(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    return error if isinstance(error, Exception) else ConnectionError(type(error).__name__)
