"""Changes to the settings file that keep its comments and its layout."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import tomlkit
from tomlkit.exceptions import TOMLKitError

from wakeful.config.settings import SECRETS
from wakeful.core.errors import Conflict, Invalid, NotFound, Unavailable
from wakeful.core.files import draft_of, sync_folder
from wakeful.mcp.rules import read_servers


class SettingsFileUnusable(Unavailable):
    code = "settings_file_unusable"


class McpServerExists(Conflict):
    code = "mcp_server_exists"


class BadMcpServer(Invalid):
    code = "bad_mcp_server"


class NoMcpServer(NotFound):
    code = "no_mcp_server"


def add_mcp_server(path: Path, name: str, entry: Mapping[str, Any]) -> None:
    """Add the table [mcp.NAME], after checking it as a start would. Secrets that it refers to are not read."""
    document = _load(path)
    servers = cast("dict[str, Any]", document.setdefault("mcp", tomlkit.table(is_super_table=True)))
    if name in servers:
        raise McpServerExists(
            f"There is an MCP server {name!r} in {path} already. Remove it first with `wakeful mcp rm {name}`, or edit "
            "the file."
        )
    _, problems = read_servers({name: dict(entry)}, lambda _place, _key: "a secret")
    if problems:
        raise BadMcpServer("\n".join(problems))
    table = tomlkit.table()
    for key, value in entry.items():
        table.add(key, _inline(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value)
    servers[name] = table
    _save(path, tomlkit.dumps(document))


def remove_mcp_server(path: Path, name: str) -> None:
    """Remove the table [mcp.NAME]."""
    document = _load(path)
    tables = cast("dict[str, Any]", document)
    servers = cast("dict[str, Any]", tables.get("mcp", {}))
    if name not in servers:
        raise NoMcpServer(f"There is no MCP server {name!r} in {path}. It has: {', '.join(servers) or 'none'}.")
    del servers[name]
    if not servers:
        del tables["mcp"]
    _save(path, tomlkit.dumps(document))


def without_secrets(path: Path) -> str | None:
    """Return the settings file without its secrets, and without the places of files on this machine; None: no file."""
    if not path.exists():
        return None
    document = _load(path)
    tables = cast("dict[str, Any]", document)
    for name in (*SECRETS, "data_dir", "backup_dir"):
        tables.pop(name, None)
    for server in cast("dict[str, dict[str, Any]]", tables.get("mcp", {})).values():
        for name in ("env", "headers"):
            values = cast("dict[str, Any]", server.get(name, {}))
            for key in [key for key, value in values.items() if isinstance(value, str)]:
                del values[key]  # others say where a secret is found
    for model in cast("dict[str, dict[str, Any]]", tables.get("models", {})).values():
        if isinstance(model.get("key"), str):
            del model["key"]
    return tomlkit.dumps(document)


def _load(path: Path) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return tomlkit.document()
    except OSError as error:
        raise SettingsFileUnusable(f"{path} cannot be read: {error.strerror}.") from error
    except (TOMLKitError, UnicodeDecodeError) as error:
        raise SettingsFileUnusable(f"{path} is not a TOML file: {error}. Nothing was changed.") from error


def _save(path: Path, text: str) -> None:
    """Replace the file in one step. It keeps its mode; a new one is for its owner alone. A link stays a link."""
    path = path.resolve()
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    try:
        with draft_of(path, text.encode()) as draft:
            draft.chmod(mode)
            draft.replace(path)
            sync_folder(path.parent)
    except OSError as error:
        raise SettingsFileUnusable(f"{path} cannot be written: {error.strerror}. Nothing was changed.") from error


def _inline(values: Mapping[str, Any]) -> Any:
    table = tomlkit.inline_table()
    for key, value in values.items():
        table.append(key, _inline(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value)
    return table
