"""A connection to an MCP server, over stdio or HTTP: held open by a task of its own and shared by all runs."""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
import httpx2
import orjson
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    Implementation,
    TextContent,
    TextResourceContents,
    jsonrpc_message_adapter,
)
from mcp_types import Tool as McpTool

from wakeful.core.texts import frame, to_storable
from wakeful.homes.workspace import make_private_directory
from wakeful.mcp.rules import McpServer, hide_secrets
from wakeful.sandbox.guard import guarded
from wakeful.sandbox.rules import SEARCH_PATH, ConfinementRules
from wakeful.toolbox.registry import ToolResult

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


# The stdio transport to an MCP server: a child process under our guard, with an environment of its own.
#
# The SDK's `mcp.client.stdio` is not used. It takes a line of any length and copies all of it for each chunk (2.3.0: a
# line of 4 MB takes 0.3 s of CPU, 16 MB 2.4 s, 64 MB is not read within 10 s), logs lines that it cannot parse with
# their content, passes on USER, SHELL and LOGNAME of this process, and does not report the exit code of the child.


MAX_LINE = 4 * 1024 * 1024  # bytes of one message
MAX_STDERR = 4_000  # characters of its standard error that are logged, the last ones
STEP_SECONDS = 2.0  # for each step of stopping it


@asynccontextmanager
async def started(
    server: McpServer, home: Path, rules: ConfinementRules | None, on_end: Callable[[], None], stderr: bytearray
) -> AsyncGenerator[Streams]:
    """Start the program, confined unless `rules` is None; stop it and its children at the end of the block.

    `on_end` is called at the end of its output, before pending calls fail. `stderr` gets the end of its stderr.
    """
    await asyncio.to_thread(make_private_directory, home)
    process = await asyncio.create_subprocess_exec(
        *guarded(*server.command, rules=rules),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": SEARCH_PATH, "HOME": str(home), "LANG": "C.UTF-8", **server.env},
        cwd=home,
        start_new_session=True,
        limit=MAX_LINE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    to_us, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_us = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_read(process.stdout, to_us, server.name, on_end)),
        asyncio.create_task(_write(process.stdin, from_us)),
    ]
    reading = asyncio.create_task(_keep_end(process.stderr, stderr))
    try:
        yield incoming, outgoing
    finally:
        with anyio.CancelScope(shield=True):  # every wait in it is bounded
            await _end(process, tasks)
            for stream in (to_us, incoming, outgoing, from_us):
                stream.close()
            await _log_end(server, process, reading, stderr)


async def _read(
    stdout: asyncio.StreamReader,
    to_us: ObjectSendStream[SessionMessage | Exception],
    name: str,
    on_end: Callable[[], None],
) -> None:
    """Pass messages from stdout to the session until stdout ends; then close the stream, so pending calls fail."""
    async with to_us:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the session was closed
            while line := await _line(stdout, name):
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    log.debug("MCP server sent an invalid message", extra={"server": name, "bytes": len(line)})
                    continue
                await to_us.send(SessionMessage(message))
        on_end()


async def _line(stdout: asyncio.StreamReader, name: str) -> bytes:
    try:
        return await stdout.readline()
    except ValueError:
        log.warning("MCP server sent a message too long", extra={"server": name, "most": MAX_LINE})
        return b""


async def _write(stdin: asyncio.StreamWriter, from_us: ObjectReceiveStream[SessionMessage]) -> None:
    async with from_us:
        with contextlib.suppress(ConnectionError):  # it has exited, which `_read` reports
            async for each in from_us:
                stdin.write(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await stdin.drain()


async def _keep_end(output: asyncio.StreamReader, kept: bytearray) -> None:
    while piece := await output.read(65_536):
        kept += piece
        del kept[: -2 * MAX_STDERR]  # more than is logged, where a secret at the beginning could have lost its own


async def _end(process: asyncio.subprocess.Process, tasks: list[asyncio.Task[None]]) -> None:
    """Close stdin, as the protocol requires; then SIGTERM to the guard; then SIGKILL to its process group."""
    assert process.stdin is not None
    assert process.stdout is not None
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    process.stdin.close()
    # `wait` returns only after the pipe is read to its end.
    draining = asyncio.create_task(_keep_end(process.stdout, bytearray()))
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        if number is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it has just exited
                # Not process.send_signal, which reads the exit status before asyncio does, and asyncio warns of it.
                (os.killpg if number == signal.SIGKILL else os.kill)(process.pid, number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STEP_SECONDS)
            break
    draining.cancel()
    await asyncio.gather(draining, return_exceptions=True)


async def _log_end(
    server: McpServer, process: asyncio.subprocess.Process, reading: "asyncio.Task[None]", stderr: bytearray
) -> None:
    """Log the exit code, and the end of its standard error without its secrets."""
    await asyncio.wait([reading], timeout=STEP_SECONDS)
    reading.cancel()
    wrote = hide_secrets(stderr.decode(errors="replace"), server)[-MAX_STDERR:]
    log.info("MCP server ended", extra={"server": server.name, "exit_code": process.returncode, "last_words": wrote})


# The streamable HTTP transport to an MCP server.


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


# The result of an MCP tool as text for the model: framed as data, and limited in length.


MAX_RESULT = 64_000  # characters


def read_result(result: CallToolResult, server: str, tool: str) -> ToolResult:
    """Convert a result of an MCP tool."""
    text = "\n".join(_text(block) for block in result.content)
    if not text and result.structured_content is not None:
        text = orjson.dumps(result.structured_content, default=str).decode()
    whole = len(text)
    text = to_storable(text)[:MAX_RESULT]
    cut = f"[truncated: {MAX_RESULT:,} of {whole:,} characters are shown]\n" if whole > MAX_RESULT else ""
    kind = "an error" if result.is_error else "a result"
    framed = cut + frame(f"{kind} from the MCP server {server!r}", text or "(nothing)")
    metadata: dict[str, Any] = {"server": server, "tool": tool, "truncated": bool(cut)}
    if result.is_error:
        return ToolResult(text=framed, success=False, metadata=metadata | {"code": "mcp_tool_error"})
    return ToolResult(text=framed, metadata=metadata)


def _text(block: Any) -> str:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return f"[{block.mime_type}, {len(block.data) * 3 // 4:,} bytes; it cannot be shown to you]"
        case EmbeddedResource(resource=TextResourceContents() as resource):
            return f"[{resource.uri}]\n{resource.text}"
        case _:
            where = getattr(block, "uri", None) or getattr(getattr(block, "resource", None), "uri", "")
            return f"[{block.type} {where}]".replace(" ]", "]")
