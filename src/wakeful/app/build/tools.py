"""Builds the tools of a node: its own, and those of the MCP servers in the settings."""

import ssl
from dataclasses import fields
from functools import cache
from importlib import import_module

import httpx2

from wakeful.app.build.base import Base
from wakeful.config import Settings
from wakeful.domain.labels import TOOLSETS
from wakeful.server.services import Services
from wakeful.service.inbox.notify import Notify
from wakeful.tools.mcp.servers import Confining, McpLimits, McpServers, NoteTools
from wakeful.tools.planning import planning_tools
from wakeful.tools.profiles import profile_tools
from wakeful.tools.registry import ToolCatalog, ToolDeps, Tools
from wakeful.tools.shell import ShellSettings
from wakeful.tools.skills import skill_tools
from wakeful.tools.web.web import Fetcher


def build_tools(base: Base, services: Services, catalog: ToolCatalog, fetcher: Fetcher) -> Tools:
    """Put every built-in tool into the catalog. The toolset NAME is made by `make_tools` of `wakeful.tools.NAME`."""
    notify = Notify(base.store, base.clock, services.deliverer, services.hub, services.data.views_of)
    each_service = (getattr(services, field.name) for field in fields(services))
    deps = ToolDeps(*each_service, notify, fetcher, _shell(base.settings))
    for name in TOOLSETS:
        catalog.add(import_module(f"wakeful.tools.{name}").make_tools(deps))
    catalog.add(skill_tools(base.workspace_of, services.instructions))
    catalog.add(planning_tools())
    catalog.add(profile_tools(services.profiles, catalog.names_for))
    return Tools(catalog, services.agents.check_self_scheduling)


def build_fetcher(settings: Settings) -> Fetcher:
    return Fetcher(private_hosts=frozenset(settings.fetch_private_hosts), tls=_tls_context())


def build_mcp_servers(settings: Settings, note_tools: NoteTools | None = None) -> McpServers:
    limits = McpLimits(
        first_start=settings.mcp_first_start_seconds,
        start=settings.mcp_start_seconds,
        call=settings.mcp_call_seconds,
        tools=settings.mcp_most_tools,
    )
    hidden = (settings.data_dir, settings.config_dir)
    return McpServers(settings.mcp, settings.data_dir / "mcp", limits, Confining(hidden=hidden), note_tools)


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
