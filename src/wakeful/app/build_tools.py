"""Builds the tools of a node: its own, and those of the MCP servers in the settings."""

import ssl
from functools import cache

import httpx2

from wakeful.app.build_base import Base
from wakeful.config import Settings
from wakeful.server.services import Services
from wakeful.service.inbox.notify import Notify
from wakeful.tools.database import database_tools
from wakeful.tools.files import file_tools
from wakeful.tools.mcp.servers import Confining, McpLimits, McpServers
from wakeful.tools.next_run import next_run_tools
from wakeful.tools.notify import notify_tools
from wakeful.tools.profiles import profile_tools
from wakeful.tools.recall import recall_tools
from wakeful.tools.registry import ToolCatalog, Tools
from wakeful.tools.scheduler import scheduler_tools
from wakeful.tools.shell import ShellSettings, shell_tools
from wakeful.tools.skills import skill_tools
from wakeful.tools.subagents import subagent_tools
from wakeful.tools.web.web import Fetcher, web_tools

_WORKSPACE_BYTES = 1024 * 1024 * 1024


def build_tools(base: Base, services: Services, catalog: ToolCatalog, fetcher: Fetcher) -> Tools:
    """Add every built-in tool to the catalog, and return the object that calls them."""
    notify = Notify(base.store, base.clock, services.channels, services.hub, services.data.views_of)
    catalog.add(
        [
            *recall_tools(services.recalls),
            *scheduler_tools(services.schedules),
            *next_run_tools(services.next_runs),
            *database_tools(services.data, _WORKSPACE_BYTES),
            *notify_tools(notify),
            *file_tools(_WORKSPACE_BYTES, services.instructions),
            *web_tools(fetcher),
            *shell_tools(_shell(base.settings), services.notices.add_shell_refused),
            *subagent_tools(),
            *skill_tools(base.workspace_of, services.instructions),
            *profile_tools(services.profiles, catalog.names_for),
        ]
    )
    return Tools(catalog, services.agents.check_self_scheduling)


def build_fetcher(settings: Settings) -> Fetcher:
    return Fetcher(private_hosts=frozenset(settings.fetch_private_hosts), tls=_tls_context())


def build_mcp_servers(settings: Settings) -> McpServers:
    limits = McpLimits(
        first_start=settings.mcp_first_start_seconds,
        start=settings.mcp_start_seconds,
        call=settings.mcp_call_seconds,
        tools=settings.mcp_most_tools,
    )
    hidden = (settings.data_dir, settings.config_dir)
    return McpServers(settings.mcp, settings.data_dir / "mcp", limits, Confining(hidden=hidden))


def _shell(settings: Settings) -> ShellSettings:
    return ShellSettings(
        hidden=(settings.data_dir, settings.config_dir),
        read=settings.shell_read,
        has_network=settings.shell_network,
        is_unconfined=settings.shell_unconfined,
    )


@cache
def _tls_context() -> ssl.SSLContext:
    """Return the TLS context for the web, created once: reading the certificates takes 35 ms."""
    return httpx2.create_ssl_context()
