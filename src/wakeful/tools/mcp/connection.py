"""One open line to an MCP server, held by a task of its own and shared by everyone who calls."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeVar, cast

from mcp import Client
from mcp.client._transport import TransportStreams  # has no public name yet
from mcp_types import CallToolResult, Implementation
from mcp_types import Tool as McpTool

T = TypeVar("T")

# Opens a line; what it is given is called when the other end is gone.
OpenLine = Callable[[Callable[[], None]], AbstractAsyncContextManager[TransportStreams]]

_MOST_PAGES = 100
_CLOSE_PATIENCE = 8.0  # a program has three chances of two seconds


class McpConnection:
    """Opened once, closed once. What it cannot do any more it says by `is_over`."""

    def __init__(self, open_line: OpenLine, most_tools: int) -> None:
        self._open_line = open_line
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
        """Wait until its tools are known; raises what went wrong, and then it is to be closed."""
        async with asyncio.timeout(seconds):
            await asyncio.shield(self._ready)

    async def call(self, tool: str, arguments: dict[str, Any], seconds: float) -> CallToolResult:
        """Call a tool. One that takes too long is given up, and the line with it once nobody else uses it."""
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
        """Use it no more for new calls; it ends with the last one under way."""
        self._is_retired = True
        if not self._calls:
            self._over.set()

    async def ended(self) -> None:
        """Wait for its end."""
        await asyncio.wait([self._task])

    async def close(self) -> None:
        """End it now, with whatever is under way."""
        self._over.set()
        if not self._ready.done():
            self._task.cancel()
        await asyncio.wait([self._task], timeout=_CLOSE_PATIENCE)
        if self._ready.done() and not self._ready.cancelled():
            self._ready.exception()  # whoever wanted it has had it

    async def _unless_over(self, answer: Awaitable[T]) -> T:
        """Wait for an answer, but not for one of a server that is gone."""
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
                with suppress(asyncio.CancelledError, Exception):
                    await asked

    async def _hold(self) -> None:
        """Hold the line. It is opened and closed in one task, because its scopes are bound to it."""
        try:
            line = self._open_line(self._over.set)
            async with Client(line, cache=None, client_info=Implementation(name="wakeful", version="1")) as client:
                self.tools = await self._list(client)
                self._ready.set_result(client)
                await self._over.wait()
        except asyncio.CancelledError:
            if not self._ready.done():
                self._ready.cancel()
            raise
        except Exception as error:  # noqa: BLE001  (whoever wanted it gets it)
            if not self._ready.done():
                self._ready.set_exception(_first(error))
        finally:
            self._over.set()

    async def _list(self, client: Client) -> list[McpTool]:
        """Read its tools, page by page, as many as may be shown."""
        tools: list[McpTool] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
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
    """Return what went wrong first, out of the groups that task groups wrap it in."""
    if isinstance(error, BaseExceptionGroup):
        return _first(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    return error if isinstance(error, Exception) else ConnectionError(type(error).__name__)
