"""`wakeful mcp` without a command, which is the bridge, and `wakeful mcp config`, which prints blocks for MCP clients.

Both have tokens of their own.
"""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from wakeful.cli.output import WRONG, echo, fail, print_note
from wakeful.cli.server import Server
from wakeful.cli.target import Target, find_target, read_settings
from wakeful.core.addresses import is_loopback
from wakeful.core.sources import find_config_dir

# Blocks to paste into the configuration of MCP clients.


NAME = "wakeful"  # of the server in the client


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The access of a client to the server: over HTTP with a token, or by starting a program."""

    url: str
    token: str
    command: tuple[str, ...]
    env: Mapping[str, str]

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    """A client: where the block goes, and how it is written."""

    title: str
    where: str
    write: Callable[[Access], str]
    is_stdio: bool = False  # it takes no header, so it starts the bridge


def _json(value: object) -> str:
    return json.dumps(value, indent=2)


def _claude_code(access: Access) -> str:
    header = shlex.quote(f"Authorization: Bearer {access.token}")  # the token is the server's words
    return f"claude mcp add --scope user --transport http {NAME} {shlex.quote(access.url)} \\\n  --header {header}"


def _claude_desktop(access: Access) -> str:
    entry: dict[str, object] = {"command": access.command[0], "args": list(access.command[1:])}
    return _json({"mcpServers": {NAME: entry | ({"env": dict(access.env)} if access.env else {})}})


def _cursor(access: Access) -> str:
    return _json({"mcpServers": {NAME: {"url": access.url, "headers": access.headers}}})


def _gemini(access: Access) -> str:
    return _json({"mcpServers": {NAME: {"httpUrl": access.url, "headers": access.headers}}})  # `url` would be SSE


def _vscode(access: Access) -> str:
    return _json({"servers": {NAME: {"type": "http", "url": access.url, "headers": access.headers}}})


def _codex(access: Access) -> str:
    return (
        f"[mcp_servers.{NAME}]\nurl = {json.dumps(access.url)}\n"
        f'http_headers = {{ "Authorization" = {json.dumps(access.headers["Authorization"])} }}'
    )


def _opencode(access: Access) -> str:
    entry = {"type": "remote", "url": access.url, "enabled": True, "oauth": False, "headers": access.headers}
    return _json({"$schema": "https://opencode.ai/config.json", "mcp": {NAME: entry}})


def _goose(access: Access) -> str:
    return (
        f"extensions:\n  {NAME}:\n    enabled: true\n    name: {NAME}\n    description: Alarms for agents\n"
        f"    type: streamable_http\n    uri: {access.url}\n    timeout: 300\n"
        f"    headers:\n      Authorization: {json.dumps(access.headers['Authorization'])}"
    )


CLIENTS: Mapping[str, McpClient] = {
    "claude-code": McpClient(title="Claude Code", where="Run this command:", write=_claude_code),
    "claude-desktop": McpClient(
        title="Claude Desktop",
        where="Put this into claude_desktop_config.json (Settings, Developer, Edit Config), then restart it:",
        write=_claude_desktop,
        is_stdio=True,
    ),
    "cursor": McpClient(title="Cursor", where="Put this into ~/.cursor/mcp.json:", write=_cursor),
    "gemini": McpClient(title="Gemini CLI", where="Put this into ~/.gemini/settings.json:", write=_gemini),
    "vscode": McpClient(title="VS Code", where="Put this into .vscode/mcp.json:", write=_vscode),
    "codex": McpClient(title="Codex", where="Put this into ~/.codex/config.toml:", write=_codex),
    "opencode": McpClient(title="opencode", where="Put this into opencode.json:", write=_opencode),
    "goose": McpClient(title="goose", where="Put this into ~/.config/goose/config.yaml:", write=_goose),
}


BRIDGE = "wakeful mcp"  # the name of the bridge's token
Scope = Annotated[
    Literal["read", "chat", "schedule"],
    typer.Option(help="What its token may do: read, also ask agents (chat), or also book wakes (schedule)."),
]
FILE_NAME = "mcp-tokens.json"  # in the config directory; only its owner can read it


def serve_stdio(context: Any, scope: str, name: str) -> None:
    """Pass MCP on from stdin and stdout to the server, with a token of its own."""
    if sys.stdin.isatty():
        echo(context.get_help())
        print_note("\nPrograms start `wakeful mcp` and speak MCP with it. `wakeful mcp config CLIENT` prints how.")
        return
    target = find_target(lambda url: find_token(url, name, scope))
    token = find_token(target.url, name, scope)
    if token is None:
        token = make_token(Server(target), name, scope)
        save_token(target.url, name, scope, token)
    from wakeful.mcp_server.bridge import run_bridge

    run_bridge(replace(target, token=token), name)


def config(
    client: Annotated[str, typer.Argument(help=f"The program: {', '.join(CLIENTS)}.")],
    scope: Scope = "schedule",
) -> None:
    """Print what to paste into a program's settings, with this server's address and a new token for it.

    A token of the same name is replaced.
    """
    chosen = CLIENTS.get(client) or fail(f"There is no client {client!r}. There are: {', '.join(CLIENTS)}.", WRONG)
    target = find_target()
    token = make_token(Server(target), client, scope)
    if chosen.is_stdio:
        save_token(target.url, client, scope, token)
    access = Access(
        url=f"{_address(target)}/mcp", token=token, command=_command(target, client, scope), env=_env(target)
    )
    print_note(f"{chosen.title}: a new token with the scope {scope} and the name {client}. {chosen.where}")
    echo(chosen.write(access))
    print_note("The token is not shown again. Revoke it in Settings, Tokens, or with `wakeful token rm`.")


def _address(target: Target) -> str:
    """Return the address that programs use: the public one, if this machine's server has one."""
    public = read_settings().public_address if target.is_local else None
    return public or target.url


def _command(target: Target, name: str, scope: str) -> tuple[str, ...]:
    found = shutil.which("wakeful")
    start = (found,) if found else (sys.executable, "-m", "wakeful")
    if target.ca:
        start = (*start, "--ca", str(target.ca.expanduser().absolute()))
    if target.parts.scheme == "http" and not is_loopback(target.parts.hostname or ""):
        start = (*start, "--insecure")  # the user has asked for it with this command, or in the context
    return (*start, "mcp", "--name", name, *(() if scope == "schedule" else ("--scope", scope)))


def _env(target: Target) -> dict[str, str]:
    """Return the variables that a program must set, since it does not have those of this terminal, nor its directory.

    The owner's token is not one of them: the bridge has its own.
    """
    paths = ("WAKEFUL_CONFIG_DIR", "WAKEFUL_DATA_DIR", "WAKEFUL_TLS_CERTIFICATE")
    kept = {name: str(Path(os.environ[name]).expanduser().absolute()) for name in paths if os.environ.get(name)}
    if not target.is_local:
        return kept | {"WAKEFUL_URL": target.url}
    return kept | {name: os.environ[name] for name in ("WAKEFUL_HOST", "WAKEFUL_PORT") if os.environ.get(name)}


def tokens_path() -> Path:
    return find_config_dir(os.environ) / FILE_NAME


def find_token(url: str, name: str, scope: str) -> str | None:
    """Return the saved token for a server with this name, if it has this scope."""
    saved = _load().get(url, {}).get(name)
    return saved["token"] if saved and saved["scope"] == scope else None


def make_token(server: Server, name: str, scope: str) -> str:
    """Create a token in place of those with the same name, and return its secret."""
    for each in server.get("tokens")["tokens"]:
        if each["kind"] == "api" and each["name"] == name:
            server.delete("tokens", each["id"])
    return server.post("tokens", body={"name": name, "scope": scope})["secret"]


def save_token(url: str, name: str, scope: str, token: str) -> None:
    """Save a token in the file, in one step."""
    from wakeful.core.files import replace_file

    saved = _load()
    saved.setdefault(url, {})[name] = {"scope": scope, "token": token}
    path = tokens_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, f"{json.dumps(saved, indent=2)}\n".encode())
    except OSError as error:
        fail(
            f"{path} cannot be written: {error.strerror}. The new token was not saved. Set WAKEFUL_CONFIG_DIR to a "
            "directory that you can write to."
        )


def _load() -> dict[str, dict[str, Any]]:
    path = tokens_path()
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}.")
    except ValueError:
        fail(f"{path} is damaged. Delete it: new tokens are made, and the old ones can be revoked in Settings.")
