"""MCP servers: parsing them from the settings file, the names of their tools, and their public state."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal, cast
from urllib.parse import urlsplit

from wakeful.core.labels import Confined, ambiguous_names, shown_toolsets
from wakeful.core.types import Agent

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_KEYS = ("command", "url", "env", "headers", "for_users", "read", "write", "network", "unconfined")
_LIMITS = ("read", "write", "network")
_SHORTEST_SECRET = 4  # characters
_MAX_LINES = 5
_MAX_QUOTED = 500  # characters of a program's output
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")
_VALUE_BEGINS = re.compile(r"[=\s]+")
# Its password, and each of its parameters.
_IN_ADDRESS = re.compile(r"(?<=://)[^/\s:@]*:([^\s@]+)(?=@)|(?<=[?&])[^=&\s]+=([^&#\s]+)")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,100}")

McpKind = Literal["stdio", "http"]
McpStatus = Literal["off", "starting", "on", "failed"]
SecretOf = Callable[[Literal["file", "env"], str], str]  # raises ValueError with what is wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """A program to start, or a URL to connect to. Its `repr` contains no secrets."""

    name: str
    command: tuple[str, ...] = field(default=(), repr=False)
    url: str | None = field(default=None, repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    for_users: bool = False  # users who are not owners may add it to their agents too
    read: tuple[str, ...] = ()  # paths besides the system's software
    write: tuple[str, ...] = ()  # paths besides its own directory
    network: bool = False
    is_limited: bool | None = None  # whether it is confined; None: the settings file does not say

    @property
    def kind(self) -> McpKind:
        return "stdio" if self.command else "http"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return everything that may be secret, and of `--key=VALUE` or `Authorization: Bearer VALUE` the value alone.

        Of an address, also its password and the values in its query.
        """
        whole = (*self.command[1:], self.url or "", *self.env.values(), *self.headers.values())
        values = (each[found.end() :] for each in whole for found in _VALUE_BEGINS.finditer(each))
        inside = (found[1] or found[2] for each in whole for found in _IN_ADDRESS.finditer(each))
        return (*whole, *values, *inside)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpState:
    """The public state of an MCP server, without its command, address and secrets."""

    name: str
    kind: McpKind
    for_users: bool
    state: McpStatus
    tools: int
    confinement: Confined | None = None  # None: it runs elsewhere
    note: str | None = None  # such as that some tools were left out
    last_error: str | None = None


def hide_secrets(text: str, server: McpServer, *more: str) -> str:
    """Return a text without the server's secrets, and without `more`."""
    # A value such as "1" or "-y" is not a secret, and hiding it would make the rest unreadable.
    hidden = [secret for secret in (*server.secrets, *more) if len(secret) >= _SHORTEST_SECRET]
    for secret in sorted(hidden, key=len, reverse=True):
        text = text.replace(secret, "•••")
    return text


def quote_last_lines(output: str) -> str:
    """Return the last lines of a program's output, quoted on one line; empty if there is none."""
    printable = _CONTROL.sub("", _COLOUR.sub("", output))
    lines = [line.strip() for line in printable.splitlines() if line.strip()]
    quoted = " / ".join(lines[-_MAX_LINES:])
    if not quoted:
        return ""
    return f'"{quoted}"' if len(quoted) <= _MAX_QUOTED else f'"…{quoted[-_MAX_QUOTED:]}"'


def read_servers(tables: object, secret_of: SecretOf) -> tuple[dict[str, McpServer], list[str]]:
    """Parse the tables `[mcp.NAME]`; return the servers, and a line without values for every problem."""
    if not isinstance(tables, Mapping):
        return {}, ["`mcp` is not a table. Write one table for each server, such as [mcp.weather]."]
    servers: dict[str, McpServer] = {}
    problems: list[str] = []
    for name, table in cast("Mapping[str, object]", tables).items():
        try:
            servers[name] = _read(name, table, secret_of)
        except ValueError as error:
            problems.append(f"[mcp.{name}]: {error}")
    return servers, problems


def _read(name: str, table: object, secret_of: SecretOf) -> McpServer:
    if not _NAME.fullmatch(name):
        raise ValueError("the name must be 1 to 32 of a-z, 0-9 and -, beginning with a letter.")
    if not isinstance(table, Mapping):
        raise ValueError('it is not a table. Write command = ["program", "argument"] or url = "https://…" under it.')
    given = cast("Mapping[str, object]", table)
    for key in given:
        if key not in _KEYS:
            [nearest] = get_close_matches(key, _KEYS, n=1, cutoff=0)
            raise ValueError(f"there is no key {key!r}; the nearest is {nearest!r}.")
    if ("command" in given) == ("url" in given):
        raise ValueError("it takes exactly one of `command` (a program to start) and `url` (an address).")
    is_program = "command" in given
    stray = "headers" if is_program else "env"
    if stray in given:
        raise ValueError(f"`{stray}` belongs to a server with a {'url' if is_program else 'command'}.")
    for key in ("for_users", "network", "unconfined"):
        if not isinstance(given.get(key, False), bool):
            raise ValueError(f"`{key}` is true or false.")
    limits = [key for key in _LIMITS if key in given]
    if not is_program and (limits or "unconfined" in given):
        raise ValueError(f"`{(*limits, 'unconfined')[0]}` belongs to a server with a command.")
    if limits and given.get("unconfined"):
        raise ValueError(f"`unconfined = true` and `{limits[0]}` exclude each other.")
    return McpServer(
        name=name,
        command=_command(given["command"]) if is_program else (),
        url=None if is_program else _url(given["url"]),
        env=_values("env", given.get("env", {}), _VARIABLE, secret_of),
        headers=_values("headers", given.get("headers", {}), _HEADER, secret_of),
        for_users=bool(given.get("for_users", False)),
        read=_paths("read", given.get("read", [])),
        write=_paths("write", given.get("write", [])),
        network=bool(given.get("network", False)),
        is_limited=True if limits or given.get("unconfined") is False else False if given.get("unconfined") else None,
    )


def _paths(key: str, value: object) -> tuple[str, ...]:
    words = cast("list[object]", value) if isinstance(value, list) else [None]
    paths = tuple(word for word in words if isinstance(word, str) and word.startswith(("/", "~/")) and "\0" not in word)
    if len(paths) != len(words):
        raise ValueError(f'`{key}` is a list of absolute paths, such as ["/srv/notes"].')
    return paths


def _command(value: object) -> tuple[str, ...]:
    words = cast("list[object]", value) if isinstance(value, list) else []
    texts = tuple(word for word in words if isinstance(word, str) and "\0" not in word)
    if not texts or not texts[0] or len(texts) != len(words):
        raise ValueError('`command` is a list of texts, such as ["uvx", "some-server"].')
    return texts


def _url(value: object) -> str:
    try:
        parts = urlsplit(str(value))
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        is_plain = is_web and not parts.username and not parts.password
    except ValueError:  # whose text may have a password in it
        is_plain = False
    if not is_plain:
        raise ValueError("`url` is an http:// or https:// address without user name or password.")
    return str(value)


def _values(key: str, value: object, names: re.Pattern[str], secret_of: SecretOf) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError(f"`{key}` is a table of names and values.")
    read: dict[str, str] = {}
    for name, each in cast("Mapping[str, object]", value).items():
        if not names.fullmatch(name):
            raise ValueError(f"{name!r} cannot be a name in `{key}`.")
        text = _value(f"{key}.{name}", each, secret_of)
        if "\0" in text or "\n" in text or "\r" in text:
            raise ValueError(f"`{key}.{name}` has more than one line, or a NUL.")
        read[name] = text
    return read


def _value(where: str, value: object, secret_of: SecretOf) -> str:
    """Return a text, or the content of a file or environment variable that it refers to."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        given = cast("Mapping[str, object]", value)
        if len(given) == 1:
            [(place, key)] = given.items()
            if place in ("file", "env") and isinstance(key, str):
                try:
                    return secret_of(place, key)
                except ValueError as error:
                    raise ValueError(f"`{where}`: {error}") from None
    raise ValueError(f'`{where}` is a text, {{ file = "path" }} or {{ env = "VARIABLE" }}.')


def foreign_names(agent: Agent, toolset_of: Mapping[str, str | None]) -> list[str]:
    """Return the names by which 0.2 may have shown an agent a tool of an MCP server, and that mean another tool now.

    There, a built-in tool that the agent was shown came before one of the same name.
    """
    shown = {*shown_toolsets(agent), None}
    return [name for name in ambiguous_names(agent.mcp_servers) if toolset_of.get(name, "") not in shown]
