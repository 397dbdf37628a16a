"""Rules about agents: their settings, what their users may grant, finding one by name, and profiles."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from wakeful.core import labels
from wakeful.core.errors import Forbidden, Invalid, NotFound
from wakeful.core.labels import may_be_of, plain_name
from wakeful.core.texts import check_size
from wakeful.core.types import Agent, Message, Run, Session, User
from wakeful.core.zones import is_same_zone, load_zone
from wakeful.mcp.rules import McpServer
from wakeful.models.names import check_written
from wakeful.timing.bounds import check_bounds

TOOLSETS = tuple(labels.TOOLSETS)
FIRST_TOOLSETS = tuple(name for name in TOOLSETS if name != "shell")
NEW_TOOLSETS = ("files", "web")  # self-scheduling and the database are off until someone turns them on

MAX_NAME = 200
MAX_TEXT = 100_000
MAX_DATABASE_MB = 100_000
MAX_SUBAGENTS = 50
MAX_MODELS = 50
_MAX_NAMES = dict.fromkeys(("mcp_servers", "ask_before", "profiles"), 200) | {
    "subagents": MAX_SUBAGENTS,
    "allowed_models": MAX_MODELS,
}

_MODEL = re.compile(r"\S{1,200}")


class BadAgent(Invalid):
    code = "bad_agent"


class ShellNotGranted(Forbidden):
    code = "shell_not_granted"
    field = "toolsets"
    text = "Only an owner of this server can give an agent the toolset 'shell'. Ask one of them, or leave it out."


class RoomNotGranted(Forbidden):
    code = "room_not_granted"

    def __init__(self, wanted: int, most: int) -> None:
        super().__init__(
            f"Only an owner of this server can give an agent a database of {wanted} MB; the server's own limit is "
            f"{most} (agent_database_mb).",
            field="database_mb",
        )


class ModelsNotGranted(Forbidden):
    code = "models_not_granted"

    def __init__(self, changed: Collection[str], before: Agent | None) -> None:
        allowed = () if before is None else before.allowed_models
        super().__init__(
            "Only an owner of this server can change which models an agent's schedules may ask for: "
            f"{', '.join(map(repr, sorted(changed)))}. Allowed now, besides its own: {', '.join(allowed) or 'none'}.",
            field="allowed_models",
        )


class McpNotGranted(Forbidden):
    code = "mcp_not_granted"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Only an owner of this server can give an agent the MCP server {name!r}, "
            "unless the settings file says `for_users = true` for it. Ask one of them, or leave it out.",
            field="mcp_servers",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Names that an agent's settings can refer to on this server."""

    mcp_servers: Mapping[str, McpServer] = field(default_factory=dict[str, McpServer])
    tools: Collection[str] = ()
    models: Collection[str] = ()  # names of models that were added
    database_mb: int = 100  # quota of a database whose agent has no quota of its own


def check(agent: Agent, known: Known | None = None, before: Agent | None = None) -> None:
    """Refuse settings that cannot work. Names that the agent already had may stay, even if they no longer exist."""
    _check_outside(agent, known or Known(), before)
    _check_models(agent, known or Known(), before)
    if agent.timezone is not None:
        load_zone(agent.timezone)
    check_bounds(agent.bounds)
    if not agent.name.strip() or len(agent.name) > MAX_NAME:
        raise BadAgent(
            f"`name` must have 1 to {MAX_NAME} characters, not only spaces; {agent.name[:20]!r} has {len(agent.name)}.",
            field="name",
        )
    for text in ("description", "system_prompt"):
        check_size(text, len(getattr(agent, text)), MAX_TEXT, "characters", BadAgent)
    for names, most in _MAX_NAMES.items():
        check_size(names, len(getattr(agent, names)), most, "names", BadAgent)
    for name in agent.toolsets:
        if name not in TOOLSETS:
            raise BadAgent(f"There is no toolset {name!r}. There are: {', '.join(TOOLSETS)}.", field="toolsets")
    if agent.database_mb is not None and not 1 <= agent.database_mb <= MAX_DATABASE_MB:
        raise BadAgent(f"`database_mb` must be 1 to {MAX_DATABASE_MB:,}, got {agent.database_mb}.", field="database_mb")
    for name in agent.allowed_models:
        if not _MODEL.fullmatch(name):
            raise BadAgent(
                f"{name[:80]!r} is not a model name: 1 to 200 characters without blanks, such as "
                "'anthropic:claude-sonnet-4-5'.",
                field="allowed_models",
            )
    if not 1 <= agent.max_iterations <= 1_000:
        raise BadAgent(f"`max_iterations` must be 1 to 1,000, got {agent.max_iterations}.", field="max_iterations")


def check_grants(user: User, before: Agent | None, after: Agent, known: Known | None = None) -> None:
    """Let only an owner grant what can do harm outside of the agent's own workspace and database."""
    if user.role == "owner":
        return
    had = () if before is None else (*before.toolsets, *before.mcp_servers)
    if "shell" in set(after.toolsets) - set(had):
        raise ShellNotGranted
    changed = set(after.allowed_models) ^ set(() if before is None else before.allowed_models)
    if changed:
        raise ModelsNotGranted(changed, before)
    known = known or Known()
    wanted = after.database_mb
    if wanted is not None and wanted > known.database_mb and (before is None or wanted != before.database_mb):
        raise RoomNotGranted(wanted, known.database_mb)
    servers = known.mcp_servers
    for name in after.mcp_servers:
        if name not in had and not (name in servers and servers[name].for_users):
            raise McpNotGranted(name)


def offered_zone(agent: Agent) -> str | None:
    """Return the user's time zone, to offer it to them if the agent's own is a different one."""
    theirs = agent.user_timezone
    if not agent.offers_zone or agent.timezone is None or theirs is None or is_same_zone(agent.timezone, theirs):
        return None
    return theirs


def asks_before(agent: Agent, tool: str) -> bool:
    """Return whether a tool of this agent needs a person's approval for each call.

    A tool of an MCP server needs it by both of its names, so that NAME_* means all tools of the server NAME.
    """
    names = (tool, plain_name(tool))
    return any(
        each == name or (name.endswith("*") and each.startswith(name[:-1]))
        for name in agent.ask_before
        for each in names
    )


def _check_outside(agent: Agent, known: Known, before: Agent | None) -> None:
    for name in _added("mcp_servers", agent, before):
        if name not in known.mcp_servers:
            raise BadAgent(
                f"There is no MCP server {name!r}. {_nearest(name, known.mcp_servers)} "
                "They are named in the server's settings file.",
                field="mcp_servers",
            )
    for name in _added("ask_before", agent, before):
        start = name.removesuffix("*")
        is_outside = may_be_of(known.mcp_servers, start)
        is_known = any(tool.startswith(start) for tool in known.tools) if name.endswith("*") else name in known.tools
        if not is_outside and not is_known:
            raise BadAgent(f"There is no tool {name!r}. {_nearest(name, known.tools)}", field="ask_before")


def _check_models(agent: Agent, known: Known, before: Agent | None) -> None:
    had = () if before is None else (before.model, *before.allowed_models)
    if agent.model is not None and agent.model not in had:
        check_written(agent.model, known.models)
    for name in agent.allowed_models:
        if name not in had:
            check_written(name, known.models, "allowed_models")


def _added(field_name: str, agent: Agent, before: Agent | None) -> list[str]:
    had: tuple[str, ...] = () if before is None else getattr(before, field_name)
    return [name for name in getattr(agent, field_name) if name not in had]


def _nearest(name: str, known: Collection[str]) -> str:
    if not known:
        return "There are none."
    return f"The nearest is {get_close_matches(name, known, n=1, cutoff=0)[0]!r}."


class AmbiguousAgent(Invalid):
    code = "ambiguous_agent"

    def __init__(self, wanted: str, found: Sequence[Agent]) -> None:
        ids = ", ".join(agent.id for agent in found)
        super().__init__(f"{len(found)} agents have the name {wanted!r}. Give one of their ids: {ids}.", field="agent")


class UnknownAgent(NotFound):
    code = "no_such_agent"

    def __init__(self, wanted: str | None, agents: Sequence[Agent]) -> None:
        if not agents:
            super().__init__("You have no agent yet. Create one on the page, or with `wakeful agent add NAME`.")
            return
        names = ", ".join(repr(agent.name) for agent in agents)
        super().__init__(f"There is no agent {wanted!r}. Yours are: {names}.", field="agent")


def pick_agent(agents: Sequence[Agent], wanted: str | None) -> Agent:
    """Return the agent with an id or a name, in which case does not matter; without any, the first one."""
    if wanted is None or not agents:
        if not agents:
            raise UnknownAgent(wanted, agents)
        return agents[0]
    by_id = [agent for agent in agents if agent.id == wanted]
    found = by_id or [agent for agent in agents if agent.name.casefold() == wanted.strip().casefold()]
    if not found:
        raise UnknownAgent(wanted, agents)
    if len(found) > 1:
        raise AmbiguousAgent(wanted, found)
    return found[0]


def within(tools: Iterable[str], only: Collection[str] | None) -> tuple[str, ...]:
    """Return the tools that are in `only`; None: all of them."""
    return tuple(tool for tool in tools if only is None or tool in only)


# Handing a session over to another agent, which then is its profile.


SWITCH_PROFILE = "switch_profile"  # the tool


class NotListed(Forbidden):
    code = "profile_not_listed"

    def __init__(self, asked: str, listed: Sequence[Agent]) -> None:
        there_are = f"You may switch to: {', '.join(repr(agent.name) for agent in listed)}." if listed else ""
        super().__init__(f"{asked[:100]!r} is not one of the profiles that your owner listed. {there_are}".strip())


def acting_agent(run: Run, messages: Sequence[Message]) -> str:
    """Return the id of the agent that executes a run now: its own, or the last one it was handed over to."""
    for message in reversed(messages):
        data = message.data or {}
        is_own = message.run_id == run.id and message.role == "tool"
        if is_own and data.get("tool") == SWITCH_PROFILE and data.get("success"):
            return data["metadata"]["profile_id"]
    return run.agent_id


def find_profile(asked: str, listed: Sequence[Agent]) -> Agent:
    """Return the listed agent with this id or name."""
    wanted = asked.strip().casefold()
    for agent in listed:
        if asked == agent.id or wanted == agent.name.casefold():
            return agent
    raise NotListed(asked, listed)


def limit_profile(config: Mapping[str, Any], session: Session) -> Mapping[str, Any]:
    """Return a session's configuration limited to the tools of the agent that handed it over."""
    if session.tool_limit is None:
        return config
    return {**config, "tool_ids": narrow_profile(session.tool_limit, config.get("tool_ids"))}


def narrow_profile(tools: Collection[str], only: Collection[str] | None) -> list[str]:
    return [name for name in tools if only is None or name in only]
