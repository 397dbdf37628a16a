"""The MCP servers of this node: started when first needed, shared by all agents that have them on.

The `mcp` package takes a second to import, so nothing here does it before a server is needed.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import ConfigDict

from wakeful.domain.agents.confinement import REMEDY, Confined, Confinement
from wakeful.domain.agents.mcp_servers import McpServer, McpState, hide_secrets, prefix_of, quote_last_lines
from wakeful.domain.errors import Unavailable
from wakeful.domain.events import Waiting
from wakeful.service.resources import shortage
from wakeful.tools.confinement.probe import find_confinement
from wakeful.tools.confinement.rules import SEARCH_PATH, ConfinementRules, make_rules
from wakeful.tools.registry import Arguments, Tool, ToolContext, ToolResult

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams
    from mcp_types import Tool as McpTool

    from wakeful.tools.mcp.connection import McpConnection

log = logging.getLogger(__name__)

MAX_NAME = 64  # characters; providers take no more
MAX_DESCRIPTION = 2_000
MAX_SCHEMA = 20_000  # bytes
FIRST_PAUSE = 2.0  # seconds after a failed start; doubled each time
MAX_PAUSE = 300.0
_SHOWN = 300  # characters of an error
_NOT_KNOWN = "Which tools it has is known once it has started: with the first run, or schedule, that needs them."

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class McpLimits:
    """How long a server may take, in seconds, and how many of its tools are shown."""

    first_start: float = 120.0  # until it has started once: it may have to be downloaded
    start: float = 20.0
    call: float = 60.0
    tools: int = 100


class McpDown(Unavailable):
    code = "mcp_server_down"


class AnyArguments(Arguments):
    """Whatever the server itself will look at."""

    model_config = ConfigDict(extra="allow", frozen=True)


@dataclass(slots=True, kw_only=True)
class Confining:
    """How programs are confined here, and which are not because they were there before that was possible."""

    confinement: Callable[[], Confinement] = find_confinement
    hidden: tuple[Path, ...] = ()  # the server's own directories
    upgraded: frozenset[str] = frozenset()


class McpServers:
    """Starts servers, knows their tools, and calls them."""

    def __init__(
        self,
        servers: Mapping[str, McpServer],
        root: Path,
        limits: McpLimits | None = None,
        confining: Confining | None = None,
    ) -> None:
        self._confining = confining or Confining()
        self._lines = {
            name: _Line(server, root / name, limits or McpLimits(), self._confining)
            for name, server in sorted(servers.items())
        }

    def keep_unconfined(self, names: Collection[str]) -> None:
        """Run these as before the upgrade from 0.1, as long as the settings file does not say what they reach."""
        self._confining.upgraded = frozenset(names)
        for line in self._lines.values():
            if line.unconfined_note is not None:
                log.warning("MCP server runs unconfined", extra={"server": line.name, "note": line.unconfined_note})

    async def prepare(self, names: Iterable[str]) -> list[str]:
        """Start what is not running yet, and return what a model should know: which are down, which show less."""
        lines = [self._lines[name] for name in names if name in self._lines]
        problems = await asyncio.gather(*(line.prepare() for line in lines))
        gone = [f"The MCP server {name!r} is no longer set up here." for name in names if name not in self._lines]
        return [*filter(None, problems), *(line.note for line in lines if line.note), *gone]

    def tell_starting(self, names: Iterable[str], seconds: float) -> Waiting | None:
        """Say which of these servers are being started, for so many seconds already."""
        starting = [line.told_start for name in names if (line := self._lines.get(name)) and line.is_starting]
        if not starting:
            return None
        since = f" ({seconds:.0f} s)" if seconds >= 1 else ""
        return Waiting(for_="mcp_server", reason=f"{', '.join(starting)}{since}")

    def tell_failed(self, names: Iterable[str]) -> list[Waiting]:
        """Say which of these servers did not start, with their own last lines, and when they are tried again."""
        failed = [line.tell_failed() for name in names if (line := self._lines.get(name))]
        return [frame for frame in failed if frame is not None]

    def tools_of(self, names: Iterable[str]) -> list[Tool]:
        """Return the tools of servers as far as they are known; those of one that was never started are not."""
        return [tool for name in names if name in self._lines for tool in self._lines[name].tools]

    def states(self) -> list[McpState]:
        return [line.state() for line in self._lines.values()]

    async def aclose(self) -> None:
        await asyncio.gather(*(line.close() for line in self._lines.values()))


class _Line:
    """One server: the connection to it, if there is one, and what is known of its tools."""

    def __init__(self, server: McpServer, home: Path, limits: McpLimits, confining: Confining) -> None:
        self._server = server
        self._confining = confining
        self._home = home
        self._limits = limits
        self._starting: asyncio.Task[McpConnection] | None = None  # one start at a time, whoever waits for it
        self._connection: McpConnection | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._failures = 0
        self._retry_at = 0.0
        self._error: str | None = None
        self._last_words = bytearray()  # of its standard error
        self._wrote = ""  # the same, quoted, when it did not start: for people, and never for a model
        self.is_known = False  # what tools it has
        self.tools: list[Tool] = []
        self.note: str | None = None

    @property
    def name(self) -> str:
        return self._server.name

    @property
    def is_starting(self) -> bool:
        return self._starting is not None

    @property
    def told_start(self) -> str:
        return f"starting {self.name}" if self._server.kind == "stdio" else f"connecting to {self.name}"

    def tell_failed(self) -> Waiting | None:
        left = self._retry_at - asyncio.get_running_loop().time()
        if self._error is None or left <= 0:
            return None
        return Waiting(
            for_="mcp_server",
            reason=f"{self.name} is left out of this run: {self._told_error}",
            retry_in=round(left, 1),
        )

    @property
    def _told_error(self) -> str | None:
        return f"{self._error}. It wrote: {self._wrote}" if self._error is not None and self._wrote else self._error

    @property
    def _is_unconfined(self) -> bool:
        if self._server.kind == "http":
            return False
        if self._server.is_limited is None:
            return self._server.name in self._confining.upgraded
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
        """Have it running; returns why it is not."""
        try:
            await self._connected()
        except McpDown as error:
            return error.message
        return None

    async def call(self, tool: str, _context: ToolContext, asked: AnyArguments) -> ToolResult:
        from wakeful.tools.mcp.results import read_result

        connection = await self._connected()
        try:
            result = await connection.call(tool, dict(asked.model_extra or {}), self._limits.call)
        except TimeoutError:
            self._fail(f"its tool {tool!r} did not answer within {self._limits.call:g} seconds")
            raise McpDown(
                f"The MCP server {self._server.name!r} did not answer within {self._limits.call:g} seconds, so the "
                "call was given up: it may or may not have happened. The server is started anew for the next call."
            ) from None
        except Exception as error:
            if _is_answer(error):
                text = f"[An error from the MCP server {self._server.name!r}.]\n{_words(error, self._server)}"
                return ToolResult(text=text, success=False, metadata={"code": "mcp_error", "server": self._server.name})
            connection.retire()
            self._fail(f"it broke off a call: {_words(error, self._server)}")
            raise McpDown(
                f"The MCP server {self._server.name!r} broke off this call ({_words(error, self._server)}): it may or "
                "may not have happened. The server is started anew for the next call."
            ) from error
        return read_result(result, self._server.name, tool)

    def state(self) -> McpState:
        is_on = self._connection is not None and self._connection.is_usable
        has_failed = self._error is not None or self._connection is not None
        return McpState(
            name=self._server.name,
            kind=self._server.kind,
            for_users=self._server.for_users,
            state="starting" if self._starting is not None else "on" if is_on else "failed" if has_failed else "off",
            tools=len(self.tools),
            confinement=self.confinement,
            note=" ".join(filter(None, (self.unconfined_note, self.note if self.is_known else _NOT_KNOWN))) or None,
            last_error=self._told_error or (None if is_on or not has_failed else "it ended by itself"),
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
                    f"The MCP server {self._server.name!r} is not available: {self._error}. "
                    f"It is tried again in {left:.0f} seconds; do without it until then."
                )
            self._drop()
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(self._note_started)
        # A run that is stopped meanwhile does not take the start away from others who wait for it.
        return await asyncio.shield(self._starting)

    def _note_started(self, task: "asyncio.Task[McpConnection]") -> None:
        self._starting = None
        if not task.cancelled():
            task.exception()  # told to those who waited, if anyone still does

    async def _start(self) -> "McpConnection":
        connecting = await asyncio.to_thread(import_module, "wakeful.tools.mcp.connection")
        connection: McpConnection = connecting.McpConnection(self._open_line, self._limits.tools)
        seconds = self._limits.start if self.is_known else max(self._limits.first_start, self._limits.start)
        try:
            await connection.open(seconds)
        except TimeoutError:
            problem = f"it did not start within {seconds:g} seconds"
        except asyncio.CancelledError:
            await connection.close()
            raise
        except Exception as error:  # anything a stranger's server can do
            if (lacks := shortage(error)) is not None:  # it is no fault of the server, so it is tried again at once
                self._look_after(connection.close())
                raise lacks from error
            problem = f"it could not be started ({_words(error, self._server)})"
        else:
            self._failures, self._retry_at, self._error, self._wrote = 0, 0.0, None, ""
            self._connection = connection
            self._learn(connection)
            log.info("MCP server started", extra={"server": self._server.name, "tools": len(self.tools)})
            return connection
        self._look_after(connection.close())  # nobody need wait for that
        pause = min(FIRST_PAUSE * 2**self._failures, MAX_PAUSE)
        self._failures += 1
        self._retry_at = asyncio.get_running_loop().time() + pause
        self._fail(problem)
        words = self._last_words.decode(errors="replace")
        hidden = hide_secrets(words.replace(str(self._home), "~"), self._server, *self._server.command)
        self._wrote = quote_last_lines(hidden)
        raise McpDown(f"The MCP server {self._server.name!r} is not available: {problem}. Do without it for now.")

    def _open_line(self, on_end: Callable[[], None]) -> "AbstractAsyncContextManager[TransportStreams]":
        if self._server.kind == "stdio":
            child: Any = import_module("wakeful.tools.mcp.child")
            self._last_words = bytearray()
            return child.started(self._server, self._home, self._rules(), on_end, self._last_words)
        address: Any = import_module("wakeful.tools.mcp.address")
        return address.reached(self._server)

    def _rules(self) -> ConfinementRules | None:
        """Make what the program is confined by; None: nothing. Raises if it should be confined and cannot be."""
        if self._is_unconfined:
            return None
        level = self._confining.confinement().level
        if level == "none":
            raise McpDown(
                f"it cannot be confined on this machine; {REMEDY}, or say unconfined = true in [mcp.{self.name}]"
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
        """Let go of a connection that is over or retired; what it still has to do, it does by itself."""
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
        log.warning("MCP server failed", extra={"server": self._server.name, "problem": problem})

    def _learn(self, connection: "McpConnection") -> None:
        """Make tools of ours of those it lists, as many as may be shown."""
        known: dict[str, Tool] = {}
        unfit = 0
        for listed in connection.tools[: self._limits.tools]:
            tool = _as_ours(listed, self._server.name, partial(self.call, listed.name))
            if tool is None or tool.name in known:
                unfit += 1
            else:
                known[tool.name] = tool
        self.is_known = True
        self.tools = list(known.values())
        self.note = _note(self._server.name, connection, self._limits.tools, unfit)


def _note(name: str, connection: "McpConnection", most: int, unfit: int) -> str | None:
    parts: list[str] = []
    if len(connection.tools) > most:
        at_least = "" if connection.is_every_tool_listed else "at least "
        parts.append(f"it lists {at_least}{len(connection.tools)} tools, and only the first {most} are shown")
    if unfit:
        parts.append(f"{unfit} of its tools are left out because their name or schema is unfit")
    return f"MCP server {name!r}: {'; '.join(parts)}." if parts else None


def _as_ours(listed: "McpTool", server: str, act: Callable[[ToolContext, Any], Any]) -> Tool | None:
    """Return a server's tool under a name of its own, or None if no provider would take it."""
    name = prefix_of(server) + _NOT_IN_A_NAME.sub("_", listed.name)
    schema = listed.input_schema
    if not listed.name or len(name) > MAX_NAME or schema.get("type") != "object" or _size(schema) > MAX_SCHEMA:
        return None
    return Tool(
        name=name,
        toolset=f"mcp:{server}",
        description=(listed.description or listed.title or listed.name)[:MAX_DESCRIPTION],
        arguments=AnyArguments,
        raw_schema=schema,
        act=act,
        is_repeatable=bool(listed.annotations and listed.annotations.read_only_hint),
    )


def _size(schema: Mapping[str, Any]) -> int:
    try:
        return len(orjson.dumps(schema))
    except (TypeError, ValueError, RecursionError):
        return MAX_SCHEMA + 1


def _is_answer(error: Exception) -> bool:
    """Tell whether the server itself has answered with an error, so that the line to it is sound."""
    from mcp import MCPError
    from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND

    return isinstance(error, MCPError) and error.code in (INVALID_PARAMS, METHOD_NOT_FOUND)


def _words(error: BaseException, server: McpServer) -> str:
    """Say what went wrong without what must not be said."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    text = " ".join(said.split())[:_SHOWN] or type(error).__name__
    return hide_secrets(text, server, *server.command[1:], server.url or "")
