"""Blocks to paste into the configuration of MCP clients."""

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

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
