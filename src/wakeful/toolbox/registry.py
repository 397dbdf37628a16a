"""Tools: the list of them, which agent is shown which, validation of arguments, and calls."""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from wakeful.core.errors import Invalid, StoreUnavailable, WakefulError
from wakeful.core.events import RunFrame, Waiting
from wakeful.core.labels import SCHEDULING, shown_toolsets
from wakeful.core.outside import ActingRun, AskPerson
from wakeful.core.resources import shortage
from wakeful.core.texts import cut, problem_in_words
from wakeful.core.types import Agent, ClaimedRun
from wakeful.core.values import fields_of

log = logging.getLogger(__name__)

T = TypeVar("T")


class Arguments(BaseModel):
    """Arguments of a tool. An unknown field is an error that the model sees, instead of being ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def to_request(self, request: type[T]) -> T:
        """Make a request (its dataclass) from the arguments that were given."""
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
    """The run that calls a tool, set by the host; the model cannot change it."""

    run: ClaimedRun
    agent: Agent
    workspace: Path  # the agent's own directory; it need not exist yet
    only: Collection[str] | None = None  # the tools this run has; None: all of the agent's
    skills: Collection[str] | None = None  # that its session was started with; None: all of the agent's
    spawn: "Callable[[str, str], Awaitable[ToolResult]] | None" = None  # gives another agent, by name, a task
    approved: str | None = None  # the id of a booking that a person has let this call change

    @property
    def acting(self) -> ActingRun:
        return ActingRun(run=self.run, approved=self.approved)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of a call: text for the model, and metadata and frames for clients."""

    text: str
    success: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    frames: tuple[RunFrame, ...] = ()  # sent to the session's subscribers
    outside_source: str | None = None  # where its text came from, if that is not this server or its user


Act = Callable[[ToolContext, A], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool: its name, its description for the model, and the function it calls."""

    name: str
    toolset: str | None  # None: only `is_shown_to` decides who sees it
    description: str
    arguments: type[Arguments]
    act: Act[Any]
    explain: Callable[[WakefulError], ToolResult] | None = None  # the result for an error; None: its message alone
    is_repeatable: bool = False  # idempotent, so a call that a crash interrupted is repeated
    is_all_or_nothing: bool = False  # a call that the store did not respond to has changed nothing, and is repeated
    raw_schema: Mapping[str, Any] | None = None  # of an MCP tool, whose server checks its arguments
    is_shown_to: Callable[[Agent], bool] | None = None  # None: to every agent that has its toolset
    makes_files: bool = False  # in the agent's workspace or skills
    makes_files_at_once: bool = False  # so quickly that no other node has to write to them meanwhile
    is_side_by_side: bool = False  # several calls in one answer run in parallel
    reads_from: Callable[[Any], str | None] = lambda _: (
        None
    )  # the outside source that a call with these arguments reads

    @property
    def server(self) -> str | None:
        """Return the MCP server that it is from; None: it is built in."""
        kind, _, name = (self.toolset or "").partition(":")
        return name if kind == "mcp" else None

    @property
    def uses_files(self) -> bool:
        """Return whether it may read the agent's workspace or skills."""
        return self.makes_files or self.toolset in (None, "files", "shell") or self.server is not None

    @property
    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of its arguments."""
        return _schema_of(self.arguments) if self.raw_schema is None else dict(self.raw_schema)


def tool(toolset: str | None, act: Act[A], arguments: type[A], description: str, **more: Any) -> Tool:
    """Return a tool with the name of its function; `more` has other fields of `Tool`."""
    return Tool(name=act.__name__, toolset=toolset, description=description, arguments=arguments, act=act, **more)


class ToolDeps:
    """The services and settings that a toolset's `make_tools` needs, found by their class."""

    def __init__(self, *objects: object) -> None:
        self._by_class = {type(each): each for each in objects}

    def __getitem__(self, wanted: type[T]) -> T:
        return cast("T", self._by_class[wanted])


@cache
def _schema_of(arguments: type[Arguments]) -> dict[str, Any]:
    """Cached: it takes a millisecond, and every model call needs the schema of every tool."""
    return slim(arguments.model_json_schema())


class Outside(Protocol):
    """The MCP servers, as `mcp/servers.py` implements them."""

    async def prepare(self, names: Iterable[str]) -> list[str]: ...

    def waiting_for_start(self, names: Iterable[str], seconds: float) -> Waiting | None: ...

    def failed_starts(self, names: Iterable[str]) -> list[Waiting]: ...

    def tools_of(self, names: Iterable[str]) -> list[Tool]: ...


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

    def toolset_of(self) -> dict[str, str | None]:
        """Return the toolset of each tool that is not from an MCP server, by its name."""
        return {tool.name: tool.toolset for tool in self._by_name.values()}

    async def prepare(self, agent: Agent) -> list[str]:
        """Start the agent's MCP servers, and return notes for its model about those that do not work."""
        if self._outside is None or not agent.mcp_servers:
            return []
        return await self._outside.prepare(agent.mcp_servers)

    def waiting_for_start(self, agent: Agent, seconds: float) -> Waiting | None:
        """Return a frame about the agent's MCP servers that are still starting, if any, after these seconds."""
        return None if self._outside is None else self._outside.waiting_for_start(agent.mcp_servers, seconds)

    def failed_starts(self, agent: Agent) -> list[Waiting]:
        """Return a frame for each of the agent's MCP servers that did not start, with the time of the next attempt."""
        return [] if self._outside is None else self._outside.failed_starts(agent.mcp_servers)

    def waiting_for_call(self, tool: Tool | None, seconds: float) -> Waiting | None:
        """Return a frame about a call that has taken these seconds; None for a built-in tool."""
        if self._outside is None or tool is None or tool.server is None:
            return None
        waiting = f"no answer yet from {tool.server} ({seconds:.0f} s)"
        return self._outside.waiting_for_start([tool.server], seconds) or Waiting(for_="mcp_server", reason=waiting)

    def names_for(self, agent: Agent) -> list[str]:
        """Return the names of the tools an agent is shown."""
        return [tool.name for tool in self.shown_to(agent, None)]

    def of(self, toolsets: Iterable[str | None]) -> list[Tool]:
        """Return the tools of these toolsets; None stands for the tools without one."""
        shown = frozenset(toolsets)
        return [tool for tool in self._by_name.values() if tool.toolset in shown]

    def shown_to(self, agent: Agent, only: Collection[str] | None) -> list[Tool]:
        """Return the tools that a run of this agent is shown; `only` limits them to those of its wake or session."""
        own = self.of([*shown_toolsets(agent), None])
        shown = [tool for tool in own if tool.is_shown_to is None or tool.is_shown_to(agent)]
        if self._outside is not None and agent.mcp_servers:
            shown += self._outside.tools_of(agent.mcp_servers)
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
        """Call a tool of this agent. Wrong arguments and refusals are results, so that the model can correct itself.

        Raises only if the store is unavailable and the call can be repeated once it is back, or if a person has to be
        asked first.
        """
        shown = {tool.name: tool for tool in self.catalog.shown_to(context.agent, context.only)}
        tool = shown.get(name)
        if tool is None:
            return ToolResult(text=_unknown(name, shown), success=False, metadata={"code": "unknown_tool"})
        try:
            parsed = tool.arguments.model_validate(arguments)
        except ValidationError as error:
            return _failed(tool, _explain(tool, error))
        result = await self._act(tool, parsed, context)
        # An error of a server may contain its text too.
        return replace(result, outside_source=result.outside_source or tool.reads_from(parsed))

    async def _act(self, tool: Tool, parsed: Arguments, context: ToolContext) -> ToolResult:
        name = tool.name
        try:
            if tool.toolset in SCHEDULING and self._check_scheduling is not None:
                await self._check_scheduling(context.agent)  # self-scheduling may have been turned off during this run
            return await tool.act(context, parsed)
        except AskPerson:
            raise
        except WakefulError as error:
            if isinstance(error, StoreUnavailable) and (tool.is_repeatable or tool.is_all_or_nothing):
                raise
            return _failed(tool, error)
        except Exception as error:  # logged; a fault of one tool must not end the run
            if (lacks := shortage(error)) is not None:
                log.warning("tool lacks something", extra={"tool": name, "problem": lacks.message})
                return _failed(tool, lacks)
            log.exception("tool failed", extra={"tool": name, "run_id": context.run.id})
            text = f"The tool {name!r} failed ({type(error).__name__}): an error of the server, not of your call."
            return ToolResult(text=text, success=False, metadata={"code": "tool_broke"})


def _unknown(name: str, shown: Mapping[str, Tool]) -> str:
    if not shown:
        return f"There is no tool {name!r}; this agent has no tools at all."
    nearest = get_close_matches(name, shown, n=1, cutoff=0.6)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    return f"There is no tool {name!r}.{hint} Your tools: {', '.join(sorted(shown))}."


class BadArguments(Invalid):
    code = "bad_arguments"


def _failed(tool: Tool, error: WakefulError) -> ToolResult:
    """Return the error as a result that names the wrong field, so that the model can correct its call."""
    if tool.explain is not None:
        return tool.explain(error)
    text = error.message if error.hint is None else f"{error.message} {error.hint}"
    if error.field is not None and error.field not in text:
        text = f"`{error.field}`: {text}"
    return ToolResult(text=text, success=False, metadata={"code": error.code})


def _explain(tool: Tool, error: ValidationError) -> BadArguments:
    problems: list[str] = []
    for detail in error.errors(include_url=False):
        field = ".".join(map(str, detail["loc"])) or "arguments"
        given = "" if detail["type"] == "missing" else f", got {_shorten(detail['input'])}"
        problems.append(f"`{field}` {problem_in_words(detail['type'], detail['msg'])}{given}")
    takes = ", ".join(tool.arguments.model_fields)
    place = error.errors(include_url=False)[0]["loc"]
    return BadArguments(
        f"{tool.name} was not called. {'; '.join(problems)}. It takes: {takes}.", field=str(place[0]) if place else None
    )


def _shorten(value: Any) -> str:
    return cut(repr(value), 100)


_NULL = {"type": "null"}


def slim(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without what tells a model nothing: titles, and null for fields that can be left out.

    Saves a sixth of the bytes. Arguments are validated by the class, so null is still accepted.
    """
    kept = {name: value for name, value in schema.items() if not (name == "title" and isinstance(value, str))}
    if "default" in kept and kept["default"] is None:
        kinds = [kind for kind in kept.get("anyOf", ()) if kind != _NULL]
        if len(kinds) == 1:
            del kept["anyOf"], kept["default"]
            kept = kinds[0] | kept
    return {name: _slim_value(name, value) for name, value in kept.items()}


def _slim_value(name: str, value: Any) -> Any:
    if name in ("default", "const", "enum"):  # data, not a schema
        return value
    if name in ("properties", "$defs"):  # its keys are names, of which one may be `title`
        return {key: slim(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_slim_value("", each) for each in cast("list[Any]", value)]
    return slim(cast("dict[str, Any]", value)) if isinstance(value, dict) else value
