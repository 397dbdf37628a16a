"""Checks of the MCP servers in the settings file."""

from collections.abc import Iterator, Mapping
from typing import Any

from wakeful.app.checks.check import Check, wrong
from wakeful.app.mcp_trials import find_program, try_mcp_server
from wakeful.config import Settings
from wakeful.sources import FILE_NAME


def check_mcp_servers(settings: Settings, states: Mapping[str, Any] | None, *, is_quick: bool) -> Iterator[Check]:
    """Check each server: its program, and unless it is quick, a start. `states` are those of the running server."""
    file = settings.config_dir / FILE_NAME
    for name, entry in settings.mcp.items():
        state = (states or {}).get(name)
        label = f"MCP {name}"
        if entry.command and find_program(settings, name) is None:
            yield wrong(
                label,
                f"there is no program {entry.command[0]!r}",
                f"Install it, or write its full path in `command` of [mcp.{name}] in {file}; `wakeful mcp rm {name}` "
                "removes the entry. Then restart the server.",
            )
        elif states is not None and state is None:
            yield wrong(
                label, "the running server does not know it", "Restart the server, which reads the file at its start."
            )
        elif is_quick:
            yield Check(name=label, found="not started (--quick)")
        else:
            yield _try(settings, name, is_unconfined=state is not None and state["confinement"] == "unconfined")
    if not settings.mcp:
        yield Check(name="MCP", found="no servers set up")


def _try(settings: Settings, name: str, *, is_unconfined: bool) -> Check:
    trial = try_mcp_server(settings, name, is_unconfined=is_unconfined)
    if trial.problem is not None:
        return wrong(
            f"MCP {name}",
            trial.problem,
            f"Correct [mcp.{name}] in {settings.config_dir / FILE_NAME}, try it with `wakeful mcp test {name}`, and "
            "restart the server.",
        )
    return Check(name=f"MCP {name}", found=f"works, {len(trial.tools)} tools")
