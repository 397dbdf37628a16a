"""The MCP servers of this node: started when first needed, shared by all agents that have them on.

The `mcp` package takes a second to import, so it is imported when a server is first needed.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import ConfigDict

from wakeful.core.errors import StoreUnavailable, Unavailable
from wakeful.core.events import Waiting
from wakeful.core.labels import REMEDY, Confined, Confinement, tool_name
from wakeful.core.outside import MCP
from wakeful.core.resources import shortage
from wakeful.core.texts import frame, quote_line
from wakeful.mcp.rules import McpServer, McpState, hide_secrets, quote_last_lines
from wakeful.sandbox.rules import SEARCH_PATH, ConfinementRules, find_confinement, make_rules
from wakeful.toolbox.registry import Arguments, Tool, ToolContext, ToolResult

if TYPE_CHECKING:
    from mcp_types import Tool as McpTool

    from wakeful.mcp.connection import McpConnection, Streams


log = logging.getLogger(__name__)

MAX_NAME = 64  # characters; providers take no more
MAX_DESCRIPTION = 2_000
MAX_SCHEMA = 20_000  # bytes
FIRST_PAUSE = 2.0  # seconds until the retry of a failed start; doubled each time
MAX_PAUSE = 300.0
_SHOWN = 300  # characters of an error
_NOT_KNOWN = "Its tools are known once it has started, with the first run, or schedule, that needs them."

# Is given a server's name, and a fingerprint of each of its tools by the name that the server has for it.
NoteTools = Callable[[str, Mapping[str, str]], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class McpLimits:
    """Time limits of a server, in seconds, and how many of its tools are shown."""

    first_start: float = 120.0  # until it has started once: it may have to be downloaded
    start: float = 20.0
    call: float = 60.0
    tools: int = 100


class McpDown(Unavailable):
    code = "mcp_server_down"


class AnyArguments(Arguments):
    """Any arguments; the server checks them."""

    model_config = ConfigDict(extra="allow", frozen=True)


@dataclass(slots=True, kw_only=True)
class Confining:
    """Confinement of programs; those of version 0.1, which had none, may stay unconfined."""

    confinement: Callable[[], Confinement] = find_confinement
    hidden: tuple[Path, ...] = ()  # the server's own directories
    upgraded: frozenset[str] = frozenset()  # servers that were set up with 0.1


class McpServers:
    """Starts servers, knows their tools, and calls them."""

    def __init__(
        self,
        servers: Mapping[str, McpServer],
        root: Path,
        limits: McpLimits | None = None,
        confining: Confining | None = None,
        note_tools: NoteTools | None = None,
    ) -> None:
        self._confining = confining or Confining()
        self._servers = {
            name: _Server(server, root / name, limits or McpLimits(), self._confining, note_tools)
            for name, server in sorted(servers.items())
        }

    def keep_unconfined(self, names: Collection[str]) -> None:
        """Run these unconfined, as before the upgrade from 0.1, unless the settings file limits them."""
        self._confining.upgraded = frozenset(names)
        for server in self._servers.values():
            if (note := server.unconfined_note) is not None:
                log.warning("MCP server runs unconfined", extra={"server": server.name, "note": note})

    async def prepare(self, names: Iterable[str]) -> list[str]:
        """Start those that are not running, and return notes for the model: which are down or show fewer tools."""
        servers = [self._servers[name] for name in names if name in self._servers]
        problems = await asyncio.gather(*(server.prepare() for server in servers))
        gone = [
            f"The MCP server {name!r} is no longer set up on this server."
            for name in names
            if name not in self._servers
        ]
        return [*filter(None, problems), *(server.note for server in servers if server.note), *gone]

    def waiting_for_start(self, names: Iterable[str], seconds: float) -> Waiting | None:
        """Return a frame about those of these servers that are still starting, if any, after these seconds."""
        starting = [server.start_text for name in names if (server := self._servers.get(name)) and server.is_starting]
        if not starting:
            return None
        since = f" ({seconds:.0f} s)" if seconds >= 1 else ""
        return Waiting(for_="mcp_server", reason=f"{', '.join(starting)}{since}")

    def failed_starts(self, names: Iterable[str]) -> list[Waiting]:
        """Return a frame for each server that did not start, with its last output and the time until the retry."""
        failed = [server.failed_start() for name in names if (server := self._servers.get(name))]
        return [frame for frame in failed if frame is not None]

    def tools_of(self, names: Iterable[str]) -> list[Tool]:
        """Return the tools of these servers; those of a server that was never started are not known."""
        return [tool for name in names if name in self._servers for tool in self._servers[name].tools]

    def states(self) -> list[McpState]:
        return [server.state() for server in self._servers.values()]

    async def aclose(self) -> None:
        await asyncio.gather(*(server.close() for server in self._servers.values()))


class _Server:
    """One server: its connection, if there is one, and its tools, if they are known."""

    def __init__(
        self, server: McpServer, home: Path, limits: McpLimits, confining: Confining, note_tools: NoteTools | None
    ) -> None:
        self._server = server
        self._note_tools = note_tools
        self._confining = confining
        self._home = home
        self._limits = limits
        self._starting: asyncio.Task[McpConnection] | None = None  # one start at a time, shared by all callers
        self._connection: McpConnection | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._failures = 0
        self._retry_at = 0.0
        self._error: str | None = None
        self._stderr = bytearray()  # the end of it
        self._wrote = ""  # the same, quoted, after a failed start: for people, never for a model
        self.is_known = False  # its tools are known
        self.tools: list[Tool] = []
        self.note: str | None = None

    @property
    def name(self) -> str:
        return self._server.name

    @property
    def is_starting(self) -> bool:
        return self._starting is not None

    @property
    def start_text(self) -> str:
        return f"starting {self.name}" if self._server.kind == "stdio" else f"connecting to {self.name}"

    def failed_start(self) -> Waiting | None:
        left = self._retry_at - asyncio.get_running_loop().time()
        if self._error is None or left <= 0:
            return None
        return Waiting(
            for_="mcp_server",
            reason=f"{self.name} is left out of this run: {self._full_error}",
            retry_in=round(left, 1),
        )

    @property
    def _full_error(self) -> str | None:
        return f"{self._error}. It wrote: {self._wrote}" if self._error is not None and self._wrote else self._error

    @property
    def _is_unconfined(self) -> bool:
        if self._server.kind == "http":
            return False
        if self._server.is_limited is None:
            return self.name in self._confining.upgraded
        return not self._server.is_limited

    @property
    def confinement(self) -> Confined | None:
        if self._server.kind == "http":
            return None
        return self._confining.confinement().of(is_unconfined=self._is_unconfined)

    @property
    def unconfined_note(self) -> str | None:
        if not self._is_unconfined:
            return None
        if self._server.is_limited is False:
            return "Runs unconfined, as the settings file says."
        return f"Runs unconfined, as before the upgrade: add read, write or network to [mcp.{self.name}] in the file."

    async def prepare(self) -> str | None:
        """Start it if it is not running; return why that failed, else None."""
        try:
            await self._connected()
        except McpDown as error:
            return error.message
        return None

    async def call(self, tool: str, _context: ToolContext, asked: AnyArguments) -> ToolResult:
        from wakeful.mcp.connection import read_result

        connection = await self._connected()
        try:
            result = await connection.call(tool, dict(asked.model_extra or {}), self._limits.call)
        except TimeoutError:
            self._fail(f"its tool {tool!r} did not answer within {self._limits.call:g} seconds")
            raise McpDown(
                f"The MCP server {self.name!r} did not answer within {self._limits.call:g} seconds, so the "
                "call was abandoned: it may or may not have happened. The server is restarted for the next call."
            ) from None
        except Exception as error:  # whatever a server or the SDK does; the model and the log get it
            if _is_answer(error):
                text = frame(f"an error from the MCP server {self.name!r}", _describe(error, self._server))
                return ToolResult(text=text, success=False, metadata={"code": "mcp_error", "server": self.name})
            connection.retire()
            problem = _describe(error, self._server)
            self._fail(f"a call failed: {problem}")
            raise McpDown(
                f"The MCP server {self.name!r} failed during this call ({problem}): it may or may not have happened. "
                "The server is restarted for the next call."
            ) from error
        return read_result(result, self.name, tool)

    def state(self) -> McpState:
        is_on = self._connection is not None and self._connection.is_usable
        has_failed = self._error is not None or self._connection is not None
        return McpState(
            name=self.name,
            kind=self._server.kind,
            for_users=self._server.for_users,
            state="starting" if self._starting is not None else "on" if is_on else "failed" if has_failed else "off",
            tools=len(self.tools),
            confinement=self.confinement,
            note=" ".join(filter(None, (self.unconfined_note, self.note if self.is_known else _NOT_KNOWN))) or None,
            last_error=self._full_error or (None if is_on or not has_failed else "it ended by itself"),
        )

    async def close(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait([self._starting])
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def _connected(self) -> "McpConnection":
        if self._connection is not None and self._connection.is_usable:
            return self._connection
        if self._starting is None:
            left = self._retry_at - asyncio.get_running_loop().time()
            if left > 0:
                raise McpDown(
                    f"The MCP server {self.name!r} is not available: {self._error}. "
                    f"The next attempt is in {left:.0f} seconds; do without it until then."
                )
            self._drop()
            # Without the context of the run that comes first: its id would be in the log lines of all others.
            self._starting = asyncio.create_task(self._start(), context=Context())
            self._starting.add_done_callback(self._note_started)
        # Shielded: a run that is stopped must not cancel the start for other runs that wait for it.
        return await asyncio.shield(self._starting)

    def _note_started(self, task: "asyncio.Task[McpConnection]") -> None:
        self._starting = None
        if not task.cancelled():
            task.exception()  # the callers got it; without this, asyncio would log it if none is left

    async def _start(self) -> "McpConnection":
        connecting = await asyncio.to_thread(import_module, "wakeful.mcp.connection")
        connection: McpConnection = connecting.McpConnection(self._open_transport, self._limits.tools)
        seconds = self._limits.start if self.is_known else max(self._limits.first_start, self._limits.start)
        try:
            await connection.open(seconds)
        except TimeoutError:
            problem = f"it did not start within {seconds:g} seconds"
        except asyncio.CancelledError:
            await connection.close()
            raise
        except Exception as error:  # whatever a server or the SDK does; `_fail` logs it
            if (lacks := shortage(error)) is not None:  # not the server's fault, so the next call may retry at once
                self._look_after(connection.close())
                raise lacks from error
            problem = f"it could not be started ({_describe(error, self._server)})"
        else:
            self._failures, self._retry_at, self._error, self._wrote = 0, 0.0, None, ""
            self._connection = connection
            await self._learn(connection)
            log.info("MCP server started", extra={"server": self.name, "tools": len(self.tools)})
            return connection
        self._look_after(connection.close())  # in the background
        pause = min(FIRST_PAUSE * 2**self._failures, MAX_PAUSE)
        self._failures += 1
        self._retry_at = asyncio.get_running_loop().time() + pause
        self._fail(problem)
        wrote = self._stderr.decode(errors="replace").replace(str(self._home), "~")
        self._wrote = quote_last_lines(hide_secrets(wrote, self._server, *self._server.command[:1]))
        raise McpDown(f"The MCP server {self.name!r} is not available: {problem}. Do without it for now.")

    def _open_transport(self, on_end: Callable[[], None]) -> "AbstractAsyncContextManager[Streams]":
        connection: Any = import_module("wakeful.mcp.connection")
        if self._server.kind == "http":
            return connection.reached(self._server)
        self._stderr = bytearray()
        return connection.started(self._server, self._home, self._rules(), on_end, self._stderr)

    def _rules(self) -> ConfinementRules | None:
        """Return the rules for the program; None: it runs unconfined. Raises if it cannot be confined but must be."""
        if self._is_unconfined:
            return None
        level = self._confining.confinement().level
        if level == "none":
            raise McpDown(
                f"it cannot be confined on this machine; {REMEDY}, or set unconfined = true in [mcp.{self.name}]"
            )
        program = which(self._server.command[0], path=self._server.env.get("PATH", SEARCH_PATH))
        return make_rules(
            level,
            read=[*self._server.read, *([program] if program else [])],
            write=[self._home, *self._server.write],
            network=self._server.network,
            hidden=self._confining.hidden,
        )

    def _drop(self) -> None:
        """Retire the connection, which ends by itself after its last call."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.retire()
            self._look_after(connection.ended())

    def _look_after(self, ending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(ending)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _fail(self, problem: str) -> None:
        self._error, self._wrote = problem, ""
        log.warning("MCP server failed", extra={"server": self.name, "problem": problem})

    async def _learn(self, connection: "McpConnection") -> None:
        """Convert the tools that the server lists, up to the limit, and have changes of them noted."""
        listed = {each.name: each for each in connection.tools[: self._limits.tools]}
        count = Counter(tool_name(self.name, name) for name in listed)
        tools = [_to_tool(each, self.name, partial(self.call, name)) for name, each in listed.items()]
        self.is_known = True
        # Of several that would have the same name none is used: it could mean another one after the next start.
        self.tools = [tool for tool in tools if tool is not None and count[tool.name] == 1]
        self.note = _note(self.name, connection, self._limits.tools, len(listed) - len(self.tools))
        if self._note_tools is not None:
            try:
                await self._note_tools(self.name, {name: _fingerprint(each) for name, each in listed.items()})
            except StoreUnavailable as error:  # the next start compares them again
                log.warning("tools not compared", extra={"server": self.name, "problem": error.message})


def _note(name: str, connection: "McpConnection", most: int, unfit: int) -> str | None:
    parts: list[str] = []
    if len(connection.tools) > most:
        at_least = "" if connection.is_every_tool_listed else "at least "
        parts.append(f"it lists {at_least}{len(connection.tools)} tools, and only the first {most} are shown")
    if unfit:
        parts.append(f"{unfit} of its tools are left out because of their name or schema")
    return f"MCP server {name!r}: {'; '.join(parts)}." if parts else None


def _to_tool(listed: "McpTool", server: str, act: Callable[[ToolContext, Any], Any]) -> Tool | None:
    """Convert a tool, with its server in its name and description; None if no provider would accept it."""
    name = tool_name(server, listed.name)
    schema = listed.input_schema
    description = (listed.description or listed.title or listed.name)[:MAX_DESCRIPTION]
    size = len(_to_json(schema) or bytes(MAX_SCHEMA + 1))
    if not listed.name or len(name) > MAX_NAME or schema.get("type") != "object" or size > MAX_SCHEMA:
        return None
    return Tool(
        name=name,
        toolset=f"mcp:{server}",
        description=f"From the MCP server {server!r}: {description}",
        arguments=AnyArguments,
        raw_schema=schema,
        act=act,
        is_repeatable=bool(listed.annotations and listed.annotations.read_only_hint),
        makes_files=not (listed.annotations and listed.annotations.read_only_hint),
        reads_from=lambda _: f"{MCP}{server}",
    )


def _fingerprint(listed: "McpTool") -> str:
    hints = listed.annotations and listed.annotations.model_dump()
    shown = _to_json([listed.title, listed.description, listed.input_schema, hints])
    return blake2b(shown or b"", digest_size=16).hexdigest()


def _to_json(value: object) -> bytes | None:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError, RecursionError):
        return None


def _is_answer(error: Exception) -> bool:
    """Return whether the error is an answer of the server, so that the connection still works."""
    from mcp import MCPError
    from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND

    return isinstance(error, MCPError) and error.code in (INVALID_PARAMS, METHOD_NOT_FOUND)


def _describe(error: BaseException, server: McpServer) -> str:
    """Return the text of an error, which may be the server's own, quoted and without its secrets."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return quote_line(" ".join(hide_secrets(text, server).split()) or type(error).__name__, _SHOWN)
