"""The REST client of the commands, with the owner's token of this machine."""

import json
import os
import sys
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote, urlencode

import typer

from wakeful.sources import DEFAULT_HOST, DEFAULT_PORT, TOKEN_FILE, find_config_dir, read_values

if TYPE_CHECKING:
    from wakeful.config import Settings

_TIMEOUT = 30  # seconds
_OPTIONS = {  # the option that sets a field of a request, if it has another name
    "additional_context_message": "TEXT",
    "at": "--when",
    "columns": "--column",
    "conflict_columns": "--by",
    "context_views": "--view",
    "instructions": "TEXT",
    "internal_comment": "--comment",
    "comment": "--comment",
    "down_sql": "--down",
    "interval_seconds": "--every",
    "label": "--comment",
    "message": "TEXT",
    "parameters": "--param",
    "scheduled_at": "--when",
    "session_config.model": "--model",
    "session_config.session_name": "--name",
    "session_config.tool_ids": "--tool",
    "sql": "SQL",
    "timezone": "--zone",
    "toolsets": "--toolset",
    "up_sql": "SQL",
    "when": "--when",
}
REFUSED, WRONG, NOT_REACHED = 1, 2, 3  # exit codes: the server refused, wrong usage, no server
_NO_AGENT = "You have no agent yet. Create one with `wakeful agent add NAME`."


class Server:
    """A running server. Every failure ends the command with a message and an exit code."""

    def __init__(self, host: str, port: int, token: str) -> None:
        host = "127.0.0.1" if host in ("0.0.0.0", "::", "localhost") else host
        self.address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self._http = HTTPConnection(host, port, timeout=_TIMEOUT)
        self._headers = {
            "Authorization": f"Bearer {token}",
            "User-Agent": "wakeful-cli",
        }  # errors name commands

    def __del__(self) -> None:
        self._http.close()

    def get(self, *path: str, **query: Any) -> Any:
        return json.loads(self.get_text(*path, **query))

    def get_text(self, *path: str, **query: Any) -> str:
        """Return a response that is not JSON, such as a file."""
        return self._call("GET", path, query=query)

    def post(self, *path: str, body: Any = None) -> Any:
        return json.loads(self._call("POST", path, body))

    def put(self, *path: str, body: Any = None) -> Any:
        return json.loads(self._call("PUT", path, body))

    def patch(self, *path: str, body: Any = None) -> Any:
        return json.loads(self._call("PATCH", path, body))

    def delete(self, *path: str, body: Any = None) -> Any:
        return json.loads(self._call("DELETE", path, body))

    def agent(self, wanted: str | None) -> dict[str, Any]:
        """Find an agent by its id or name; without either, the only one there is."""
        agents: list[dict[str, Any]] = self.get("agents")["agents"]
        fitting = [each for each in agents if wanted is None or wanted in (each["id"], each["name"])]
        listed = "\n".join(f"  {each['id']}  {each['name']}" for each in fitting or agents)
        if not agents:
            fail(_NO_AGENT)
        if not fitting:
            fail(f"There is no agent {wanted!r}. `wakeful agent ls` shows these:\n{listed}")
        if len(fitting) > 1:
            fail(f"Which agent? Give one of these ids:\n{listed}", WRONG)
        return fitting[0]

    def agent_id(self, wanted: str | None) -> Any:
        """Return the id of an agent, given its id or name; None stays None."""
        return None if wanted is None else self.agent(wanted)["id"]

    def first_agent_id(self) -> str:
        """Return the id of the first agent, the default."""
        found = self.get("agents")["agents"]
        return found[0]["id"] if found else fail(_NO_AGENT)

    def _call(self, method: str, path: tuple[str, ...], body: Any = None, query: dict[str, Any] | None = None) -> str:
        target = "/" + "/".join(quote(part, safe="") for part in path)
        asked = {name: _spell(value) for name, value in (query or {}).items() if value is not None}
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers | ({"Content-Type": "application/json"} if data else {})
        try:
            self._http.request(method, f"{target}?{urlencode(asked)}" if asked else target, data, headers)
            response = self._http.getresponse()
            status, text = response.status, response.read().decode()
        except (OSError, HTTPException) as error:
            read_settings()  # may show the reason: a misspelt setting
            fail(
                f"No server answers at {self.address} ({type(error).__name__}). Start it with `wakeful serve`, or set "
                "WAKEFUL_HOST and WAKEFUL_PORT to its address.",
                NOT_REACHED,
            )
        if not 200 <= status < 300:
            fail(_explain(status, text))
        return text


def _spell(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _explain(status: int, text: str) -> str:
    """Return the server's message about a refused request, with the option that it is about."""
    try:
        problem = json.loads(text)["error"]
        field = problem.get("field") or ""
        option = _OPTIONS.get(field) or _OPTIONS.get(field.partition(".")[0]) or _typed(field)
        return " ".join(filter(None, (option and f"{option}:", problem["message"], problem.get("hint"))))
    except (ValueError, KeyError, TypeError):
        return f"The server answered {status} without an explanation. Is something else listening at this address?"


def _typed(field: str) -> str | None:
    """Return the option with the name of a field, if the command was called with it."""
    option = f"--{field.replace('_', '-')}"
    return option if any(each.partition("=")[0] == option for each in sys.argv) else None


def connect() -> Server:
    """Find the address of the server and the token for it in the settings.

    The other settings are checked only if something is wrong: that takes twice as long as the rest of a command.
    """
    problems: list[str] = []
    given = read_values(os.environ, ("host", "port", "token"), ("token",), problems)
    port = str(given.get("port", DEFAULT_PORT))
    if problems or not port.isdecimal():
        read_settings()
    token = given.get("token") or _read_token()
    return Server(str(given.get("host", DEFAULT_HOST)), int(port), str(token))


def _read_token() -> str:
    path = find_config_dir(os.environ) / TOKEN_FILE
    try:
        token = path.read_text(encoding="ascii").strip() if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        fail(f"The token file {str(path)!r} cannot be read: {error}.")
    if not token:
        read_settings()  # may show the reason: a misspelt setting
        fail(f"There is no token in {path.parent}. Start the server once with `wakeful serve`, or set WAKEFUL_TOKEN.")
    return token


def read_settings(*, host: str | None = None, port: int | None = None) -> "Settings":
    """Return all settings, or end the command with the errors in them."""
    from wakeful.config import ConfigError, load_settings

    try:
        return load_settings(host=host, port=port)
    except ConfigError as error:
        fail(str(error))


def to_body(
    arguments: Mapping[str, Any], names: Mapping[str, str] = MappingProxyType({}), *, without: Collection[str] = ()
) -> dict[str, Any]:
    """Return the arguments of a command that were given, under the names of a request's fields."""
    given = {name: value for name, value in arguments.items() if value not in (None, [], ()) and name not in without}
    return {names.get(name, name): value for name, value in given.items()}


@contextmanager
def failing() -> Generator[None]:
    """End the command with the message of an error that the block raises."""
    from wakeful.app.errors import StartError

    try:
        yield
    except StartError as error:
        fail(str(error))


def fail(message: str, code: int = REFUSED) -> NoReturn:
    """End the command with a message for people."""
    typer.secho(message, fg=typer.colors.RED, err=True)
    raise typer.Exit(code)
