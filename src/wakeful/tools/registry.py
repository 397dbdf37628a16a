"""The tools a model may be shown, and the one way to call them."""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from wakeful.domain.agents.agents import SCHEDULING, shown_toolsets
from wakeful.domain.doors.params import fields_of
from wakeful.domain.errors import Invalid, StoreUnavailable, WakefulError
from wakeful.domain.events import RunFrame, Waiting
from wakeful.domain.types import Agent, Run
from wakeful.service.resources import shortage

log = logging.getLogger(__name__)

T = TypeVar("T")


class Arguments(BaseModel):
    """What a tool takes. A model that sends a field too many is told so instead of being half understood."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def to_request(self, request: type[T]) -> T:
        """Make a request of the domain from the arguments that were given."""
        given = {each.name: getattr(self, each.name, None) for each in fields_of(request)}
        return request(**{name: value for name, value in given.items() if value is not None})


A = TypeVar("A", bound=Arguments)


def with_fields(
    base: type[A], request: type[Any], *, without: Collection[str] = (), is_optional: bool = False
) -> type[A]:
    """Add the fields of a request, with their descriptions, to a tool's arguments; if optional, each may be null."""
    made: dict[str, Any] = {}
    for each in fields_of(request, without):
        kind = each.type | None if is_optional or each.is_nullable else each.type
        default = None if is_optional else ... if each.is_required else each.default
        made[each.name] = (kind, Field(default, description=each.param.description))
    return create_model(request.__name__, __base__=base, **made)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """For whom a tool works. Stamped by the host; a model can change none of it."""

    run: Run
    agent: Agent
    workspace: Path  # the agent's own directory; it need not exist yet
    only: Collection[str] | None = None  # the tools this run has; None: all of the agent's
    skills: Collection[str] | None = None  # those its session was begun with; None: all of the agent's
    spawn: "Callable[[str, str], Awaitable[ToolResult]] | None" = None  # has another agent, by name, do a task


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What the model reads, and what those who watch see besides."""

    text: str
    success: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    frames: tuple[RunFrame, ...] = ()  # what those who watch are told besides


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool: its name, what the model is told about it, and what it does."""

    name: str
    toolset: str | None  # None: no toolset shows it, only `is_shown_to`
    description: str
    arguments: type[Arguments]
    act: Callable[[ToolContext, Any], Awaitable[ToolResult]]
    tell_error: Callable[[WakefulError], ToolResult] | None = None  # how it words a refusal; None: the message alone
    is_repeatable: bool = False  # doing it twice is as good as once, so a call cut off by a crash is made again
    raw_schema: Mapping[str, Any] | None = None  # of a tool from outside, which checks its arguments itself
    is_shown_to: Callable[[Agent], bool] | None = None  # None: to every agent that has its toolset
    makes_files: bool = False  # in the agent's own directory, which is then bound to this node's data directory
    is_side_by_side: bool = False  # several calls in one answer are made at once

    @property
    def server(self) -> str | None:
        """Return the MCP server that has it; None: it is our own."""
        kind, _, name = (self.toolset or "").partition(":")
        return name if kind == "mcp" else None

    @property
    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of its arguments."""
        return _schema_of(self.arguments) if self.raw_schema is None else dict(self.raw_schema)


@cache
def _schema_of(arguments: type[Arguments]) -> dict[str, Any]:
    """Made once: it takes a millisecond, and every model call needs that of every tool."""
    return arguments.model_json_schema()


class Outside(Protocol):
    """Servers with tools of their own."""

    async def prepare(self, names: Iterable[str]) -> list[str]:
        """Start them if need be, and return what a model should know about those that do not work."""
        ...

    def tell_starting(self, names: Iterable[str], seconds: float) -> Waiting | None:
        """Say which of them are being started, for so many seconds already."""
        ...

    def tell_failed(self, names: Iterable[str]) -> list[Waiting]:
        """Say which of them did not start, and when they are tried again."""
        ...

    def tools_of(self, names: Iterable[str]) -> list[Tool]:
        """Return their tools, as far as they are known."""
        ...


class ToolCatalog:
    """The tools of this server and of its MCP servers: names, toolsets, schemas, and which agent is shown which.

    It is made before the services that check names against it, and filled with the tools that call those services.
    """

    def __init__(self, tools: Iterable[Tool] = (), outside: Outside | None = None) -> None:
        self._by_name: dict[str, Tool] = {}
        self._outside = outside
        self.add(tools)

    def add(self, tools: Iterable[Tool]) -> None:
        self._by_name |= {tool.name: tool for tool in tools}

    @property
    def own_names(self) -> frozenset[str]:
        """Return the names of all tools that are not from an MCP server."""
        return frozenset(self._by_name)

    def toolset_of(self) -> dict[str, str | None]:
        """Return the toolset of each tool that is not from an MCP server."""
        return {tool.name: tool.toolset for tool in self._by_name.values()}

    def without_toolset(self) -> list[Tool]:
        """Return the tools that an agent's other settings show."""
        return [tool for tool in self._by_name.values() if tool.toolset is None]

    async def prepare(self, agent: Agent) -> list[str]:
        """Start the MCP servers that an agent has on, and return what its model should know about them."""
        if self._outside is None or not agent.mcp_servers:
            return []
        return await self._outside.prepare(agent.mcp_servers)

    def tell_starting(self, agent: Agent, seconds: float) -> Waiting | None:
        """Say which servers of an agent are being started, for so many seconds already."""
        return None if self._outside is None else self._outside.tell_starting(agent.mcp_servers, seconds)

    def tell_failed(self, agent: Agent) -> list[Waiting]:
        """Say which servers of an agent did not start, and when they are tried again."""
        return [] if self._outside is None else self._outside.tell_failed(agent.mcp_servers)

    def tell_call(self, tool: Tool | None, seconds: float) -> Waiting | None:
        """Say that a call of a server's tool has been waited for so many seconds; our own tools need no words."""
        if self._outside is None or tool is None or tool.server is None:
            return None
        waiting = f"no answer yet from {tool.server} ({seconds:.0f} s)"
        return self._outside.tell_starting([tool.server], seconds) or Waiting(for_="mcp_server", reason=waiting)

    def names_for(self, agent: Agent) -> list[str]:
        """Return the names of the tools an agent is shown."""
        return [tool.name for tool in self.shown_to(agent, None)]

    def of(self, toolsets: Iterable[str]) -> list[Tool]:
        """Return what an agent with these toolsets is shown; a tool that is off is not shown at all."""
        shown = frozenset(toolsets)
        return [tool for tool in self._by_name.values() if tool.toolset in shown]

    def shown_to(self, agent: Agent, only: Collection[str] | None) -> list[Tool]:
        """Return what a run of this agent is shown; it may have been woken, or its session begun, with fewer tools."""
        own = [*self.of(shown_toolsets(agent)), *self.without_toolset()]
        shown = [tool for tool in own if tool.is_shown_to is None or tool.is_shown_to(agent)]
        if self._outside is not None and agent.mcp_servers:
            taken = {tool.name for tool in shown}
            shown += [tool for tool in self._outside.tools_of(agent.mcp_servers) if tool.name not in taken]
        return [tool for tool in shown if only is None or tool.name in only]


class Tools:
    """Calls the tools of a catalog."""

    def __init__(
        self,
        catalog: ToolCatalog | Iterable[Tool],
        check_scheduling: Callable[[Agent], Awaitable[None]] | None = None,
    ) -> None:
        self.catalog = catalog if isinstance(catalog, ToolCatalog) else ToolCatalog(catalog)
        self._check_scheduling = check_scheduling  # raises if the agent, as it is now, may not schedule

    async def call(self, name: str, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Call a tool of this agent. A wrong call or a refusal is a result the model can learn from.

        Raises only if the store is away and the call may be made again as soon as it is back.
        """
        shown = {tool.name: tool for tool in self.catalog.shown_to(context.agent, context.only)}
        tool = shown.get(name)
        if tool is None:
            return ToolResult(text=_unknown(name, shown), success=False, metadata={"code": "unknown_tool"})
        try:
            parsed = tool.arguments.model_validate(arguments)
        except ValidationError as error:
            return _tell(tool, _explain(tool, error))
        try:
            if tool.toolset in SCHEDULING and self._check_scheduling is not None:
                await self._check_scheduling(context.agent)  # it may have been turned off during this run
            return await tool.act(context, parsed)
        except WakefulError as error:
            if isinstance(error, StoreUnavailable) and tool.is_repeatable:
                raise
            return _tell(tool, error)
        except Exception as error:  # one tool's fault must not end the run: the model may go another way
            if (lacks := shortage(error)) is not None:
                log.warning("tool lacks something", extra={"tool": name, "problem": lacks.message})
                return _tell(tool, lacks)
            log.exception("tool failed", extra={"tool": name, "run_id": context.run.id})
            text = f"The tool {name!r} broke ({type(error).__name__}); this is a fault of the server, not of your call."
            return ToolResult(text=text, success=False, metadata={"code": "tool_broke"})


def _refusal(error: WakefulError) -> str:
    """Say what was wrong, and in which field, so that the next try is right."""
    text = error.message if error.hint is None else f"{error.message} {error.hint}"
    return text if error.field is None or error.field in text else f"`{error.field}`: {text}"


def _unknown(name: str, shown: Mapping[str, Tool]) -> str:
    if not shown:
        return f"There is no tool {name!r}; this agent has no tools at all."
    nearest = get_close_matches(name, shown, n=1, cutoff=0.6)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    return f"There is no tool {name!r}.{hint} Your tools: {', '.join(sorted(shown))}."


class BadArguments(Invalid):
    code = "bad_arguments"


def _tell(tool: Tool, error: WakefulError) -> ToolResult:
    if tool.tell_error is not None:
        return tool.tell_error(error)
    return ToolResult(text=_refusal(error), success=False, metadata={"code": error.code})


def _explain(tool: Tool, error: ValidationError) -> BadArguments:
    problems = [
        f"{'.'.join(str(part) for part in detail['loc']) or 'arguments'}: {detail['msg']}"
        + ("" if detail["type"] == "missing" else f" (you sent {_shorten(detail['input'])})")
        for detail in error.errors(include_url=False)
    ]
    takes = ", ".join(tool.arguments.model_fields)
    place = error.errors(include_url=False)[0]["loc"]
    return BadArguments(
        f"{tool.name} was not called. {'; '.join(problems)}. It takes: {takes}.", field=str(place[0]) if place else None
    )


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:97] + "…"
