"""The names of tools: those of built-in ones, and those of MCP servers, which never have one of these."""

import re
from collections.abc import Iterable

# No tool of an MCP server has one of these names, whether or not an agent has the built-in tool.
BUILT_IN = frozenset((
    "schedule_recall", "manage_recall", "scheduler", "schedule_next_run", "cancel_next_run", "notify", "read_file",
    "write_file", "list_files", "search_files", "fetch_url", "run_command", "spawn_agent", "read_skill", "write_skill",
    "finish_step", "switch_profile", "more_tools", "db_schema", "db_create_table", "db_alter_table", "db_migrate",
    "db_insert", "db_upsert", "db_update", "db_delete", "db_restore", "db_query", "db_execute", "db_define_view",
    "db_run_view", "db_list_views", "db_drop_view", "db_import", "db_export",
))  # fmt: skip
_MARK = "mcp_"  # before a name that would be a built-in one
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


def tool_name(server: str, tool: str) -> str:
    """Return the name of a server's tool: SERVER_TOOL, or mcp_SERVER_TOOL if that is the name of a built-in one.

    Two servers never have the same name for a tool: a server's own name has no underscore.
    """
    name = f"{server}_{_NOT_IN_A_NAME.sub('_', tool)}"
    return f"{_MARK}{name}" if _is_reserved(name) else name


def plain_name(tool: str) -> str:
    """Return SERVER_TOOL for a tool whose name is mcp_SERVER_TOOL, and any other name as it is."""
    plain = tool.removeprefix(_MARK)
    return plain if plain != tool and _is_reserved(plain) else tool


def may_be_of(servers: Iterable[str], name: str) -> bool:
    """Return whether a tool of one of these servers may have this name, or one that starts with it."""
    prefixes = tuple(f"{mark}{server}_" for server in servers for mark in ("", _MARK))
    return name not in BUILT_IN and name.startswith(prefixes)


def ambiguous_names(servers: Iterable[str]) -> list[str]:
    """Return the names that a tool of these servers could have in 0.2, and that mean another tool since."""
    prefixes = tuple(f"{server}_" for server in servers)
    return sorted(name for each in BUILT_IN for name in (each, f"{_MARK}{each}") if name.startswith(prefixes))


def _is_reserved(name: str) -> bool:
    """Return whether it is a built-in name, with any number of marks: a server can be called mcp too."""
    name = name.lower()
    while name.startswith(_MARK):
        name = name.removeprefix(_MARK)
    return name in BUILT_IN
