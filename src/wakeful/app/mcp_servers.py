"""The MCP servers of the settings: built for a node, and started once to see whether they work."""

import asyncio
from dataclasses import dataclass
from shutil import which

from wakeful.config.settings import Settings
from wakeful.mcp.servers import Confining, McpLimits, McpServers, NoteTools
from wakeful.sandbox.rules import SEARCH_PATH
from wakeful.telemetry.logs import keep_quiet


def build_mcp_servers(settings: Settings, note_tools: NoteTools | None = None) -> McpServers:
    limits = McpLimits(
        first_start=settings.mcp_first_start_seconds,
        start=settings.mcp_start_seconds,
        call=settings.mcp_call_seconds,
        tools=settings.mcp_most_tools,
    )
    hidden = (settings.data_dir, settings.config_dir)
    return McpServers(settings.mcp, settings.data_dir / "mcp", limits, Confining(hidden=hidden), note_tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTrial:
    """The result of a start: the names of the tools, or why it failed."""

    name: str
    tools: tuple[str, ...] = ()
    problem: str | None = None
    note: str | None = None


def try_mcp_server(settings: Settings, name: str, *, is_unconfined: bool = False) -> McpTrial:
    """Start a server, read its tools and stop it. `is_unconfined`: the running node keeps it so since an upgrade."""
    return asyncio.run(_try(settings, name, is_unconfined))


async def _try(settings: Settings, name: str, is_unconfined: bool) -> McpTrial:
    entry = settings.mcp[name]
    if entry.command and find_program(settings, name) is None:
        return McpTrial(name=name, problem=f"there is no program {entry.command[0]!r}")
    keep_quiet()
    servers = build_mcp_servers(settings.model_copy(update={"mcp": {name: entry}}))
    if is_unconfined:
        servers.keep_unconfined([name])
    try:
        await servers.prepare([name])
        [state] = servers.states()
        tools = tuple(tool.name for tool in servers.tools_of([name]))
        return McpTrial(name=name, tools=tools, problem=state.last_error, note=state.note)
    finally:
        await servers.aclose()


def find_program(settings: Settings, name: str) -> str | None:
    """Return the path of an MCP server's program, as a start would find it; None if there is none."""
    entry = settings.mcp[name]
    return which(entry.command[0], path=entry.env.get("PATH", SEARCH_PATH))
