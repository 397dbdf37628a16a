"""The REST client of the commands, its connections over HTTP or TLS, and what to do when no server answers."""

import json
import sys
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import quote, urlencode

from wakeful.cli.arguments import Candidate, pick
from wakeful.cli.output import NOT_REACHED, WRONG, Refused, fail, harmless, progress
from wakeful.cli.target import NotRunning, Target, find_running_server, find_target, reachable, read_settings

if TYPE_CHECKING:
    import ssl


# Connections to a server over HTTP or TLS, and what to do when there is none.


TIMEOUT = 30  # seconds


def open_connection(target: Target, timeout: float = TIMEOUT) -> HTTPConnection:
    """Return a connection to a server, which is made with the first request."""
    host, port = str(target.parts.hostname), target.parts.port
    context = tls_context(target)
    if context is None:
        return HTTPConnection(host, port, timeout=timeout)
    return HTTPSConnection(host, port, timeout=timeout, context=context)


def tls_context(target: Target) -> "ssl.SSLContext | None":
    """Return the TLS context for a server, with the authority that the user trusts; None: it has no TLS."""
    if target.parts.scheme != "https":
        return None
    import ssl

    own = target.certificate if target.ca is None else None
    try:
        context = ssl.create_default_context(cafile=own or target.ca)
    except (OSError, ssl.SSLError) as error:
        fail(f"The file of the certificate authority {str(own or target.ca)!r} cannot be used: {error}.")
    if own is not None:  # the very certificate is checked, which is for the public name and not for 127.0.0.1
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def explain_failure(error: OSError | HTTPException, target: Target) -> str:
    """Return why a server cannot be reached, and what to do."""
    return f"No server answers at {target.url}: {_why_unreachable(error, target)} {_advice(target)}"


def explain_token(target: Target) -> str:
    """Return where a token that was refused is from, and whether it was sent to the wrong server."""
    return " ".join(filter(None, (f"The token is from {target.token_from}.", _find_other_address(target))))


def _why_unreachable(error: OSError | HTTPException, target: Target) -> str:
    import socket
    import ssl

    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted ({error.verify_message}). If it is from an authority of your own, "
            "give that authority's certificate with --ca FILE."
        )
    if isinstance(error, ssl.SSLError):
        return f"it does not speak TLS ({error.reason}). If it has none, its address begins with http://."
    if isinstance(error, socket.gaierror):
        return f"the host name {target.parts.hostname!r} is not known."
    if isinstance(error, NotRunning):
        return str(error)
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there."
    if isinstance(error, TimeoutError):
        return f"no answer within {TIMEOUT} seconds."
    if isinstance(error, HTTPException | ConnectionResetError):
        other = "https" if target.parts.scheme == "http" else "http"
        return f"what listens there does not speak HTTP. If it is Wakeful, its address begins with {other}://."
    return f"{error.strerror or type(error).__name__}."


def _advice(target: Target) -> str:
    if not target.is_local:
        return f"The address is from {target.named_by}. `wakeful --context local …` uses this machine's server."
    return _find_other_address(target) or "Start it with `wakeful serve`, or name another server with --url."


def _find_other_address(target: Target) -> str | None:
    running = find_running_server() if target.is_local else None
    if running is None or reachable(running.address) == target.url:
        return None
    return (
        f"A server with this data directory runs at {running.address} (pid {running.pid}). WAKEFUL_PORT says "
        "otherwise: unset it, and commands find the server."
    )


_OPTION_OF_FIELD = {  # the option that sets a field of a request, if it has another name
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
_NO_AGENT = "You have no agent yet. Create one with `wakeful agent add NAME`."


class Server:
    """A running server. Every failure ends the command with a message and an exit code."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.address = target.url
        self.shows_progress = True
        self._http = open_connection(target)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next request opens another one."""
        self._http.close()

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the next request, with the token."""
        return {"Authorization": self.target.authorize(), "User-Agent": "wakeful-cli"}  # errors name commands

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

    def delete(self, *path: str, body: Any = None, **query: Any) -> Any:
        return json.loads(self._call("DELETE", path, body, query))

    def agent(self, wanted: str | None) -> dict[str, Any]:
        """Find an agent by its id, the beginning of it, or its name; without any, the only one there is."""
        agents: list[dict[str, Any]] = self.get("agents")["agents"]
        if not agents:
            fail(_NO_AGENT)
        if wanted is None and len(agents) > 1:
            listed = "\n".join(f"  {each['id']}  {harmless(each['name'])}" for each in agents)
            fail(f"Which agent? Give one of these ids:\n{listed}", WRONG)
        found = [Candidate(each["id"], each["name"], each["name"]) for each in agents]
        chosen = agents[0]["id"] if wanted is None else pick(found, wanted, "agent", "wakeful agent ls").id
        return next(each for each in agents if each["id"] == chosen)

    def agent_id(self, wanted: str | None) -> Any:
        """Return the id of an agent, given its id or name; None stays None."""
        return None if wanted is None else self.agent(wanted)["id"]

    def first_agent_id(self) -> str:
        """Return the id of the first agent, the default."""
        found = self.get("agents")["agents"]
        return found[0]["id"] if found else fail(_NO_AGENT)

    def stream(self, *path: str, piece: int) -> Iterator[bytes]:
        """Send a POST and yield the response as it arrives. Ends the command if it is broken off."""
        target = self.target.parts.path + "/" + "/".join(quote(part, safe="") for part in path)
        try:
            self._http.request("POST", target, None, self.headers)
            response = self._http.getresponse()
            if not 200 <= response.status < 300:
                text = response.read().decode()
                location = response.headers.get("Location")
                raise Refused(_explain(response.status, text, location, self.target), _reason(text))
            while data := response.read(piece):
                yield data
        except (OSError, HTTPException) as error:
            fail(explain_failure(error, self.target), NOT_REACHED)

    def _call(self, method: str, path: tuple[str, ...], body: Any = None, query: dict[str, Any] | None = None) -> str:
        target = self.target.parts.path + "/" + "/".join(quote(part, safe="") for part in path)
        asked = {name: _spell(value) for name, value in (query or {}).items() if value is not None}
        data = None if body is None else json.dumps(body).encode()
        try:
            headers = self.headers | ({"Content-Type": "application/json"} if data else {})
            with progress("waiting for the server") if self.shows_progress else nullcontext():
                self._http.request(method, f"{target}?{urlencode(asked)}" if asked else target, data, headers)
                response = self._http.getresponse()
                status, text = response.status, response.read().decode()
        except (OSError, HTTPException) as error:
            if self.target.is_local:
                read_settings()  # may show the reason: a misspelt setting
            fail(explain_failure(error, self.target), NOT_REACHED)
        if not 200 <= status < 300:
            raise Refused(_explain(status, text, response.headers.get("Location"), self.target), _reason(text))
        return text


def connect() -> Server:
    """Return a client of the server that options, environment or contexts name; else of this machine's.

    The settings are checked only if something is wrong: that takes twice as long as the rest of a command.
    """
    return Server(find_target())


def to_body(
    arguments: Mapping[str, Any], names: Mapping[str, str] = MappingProxyType({}), *, without: Collection[str] = ()
) -> dict[str, Any]:
    """Return the arguments of a command that were given, under the names of a request's fields."""
    given = {name: value for name, value in arguments.items() if value not in (None, [], ()) and name not in without}
    return {names.get(name, name): value for name, value in given.items()}


@contextmanager
def failing() -> Generator[None]:
    """End the command with the message of an error that the block raises."""
    from wakeful.core.errors import WakefulError as StartError

    try:
        yield
    except StartError as error:
        fail(str(error))


class NotReached(Exception):
    """No server answers; the message says why, and what to do."""


class Answer(NamedTuple):
    """A response: its status, its JSON, and the server's time in its header."""

    status: int
    body: Any  # None if it is not JSON
    date: str | None

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300 and self.body is not None

    @property
    def fields(self) -> dict[str, Any]:
        """The JSON object of the response; empty if there is none."""
        return cast("dict[str, Any]", self.body) if isinstance(self.body, dict) else {}

    @property
    def message(self) -> str:
        """The server's message about a refused request."""
        try:
            error = self.body["error"]
            return " ".join(filter(None, (error["message"], error.get("hint"))))
        except (TypeError, KeyError):
            return f"It answered {self.status} without an explanation."


def ask(target: Target, method: str, path: str, *, body: Any = None, timeout: float = TIMEOUT, **query: Any) -> Answer:
    """Send a request and return the response, whatever its status is. Raises NotReached without one."""
    asked = {name: str(value) for name, value in query.items() if value is not None}
    headers = {"User-Agent": "wakeful-cli"} | ({} if body is None else {"Content-Type": "application/json"})
    connection = open_connection(target, timeout)
    try:
        headers["Authorization"] = target.authorize()
        place = f"{target.parts.path}{path}" + (f"?{urlencode(asked)}" if asked else "")
        connection.request(method, place, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        text, date = response.read(), response.headers.get("Date")
    except (OSError, HTTPException) as error:
        raise NotReached(explain_failure(error, target)) from error
    finally:
        connection.close()
    try:
        return Answer(response.status, json.loads(text), date)
    except ValueError:
        return Answer(response.status, None, date)


def _explain(status: int, text: str, location: str | None, target: Target) -> str:
    """Return the server's message about a refused request, with the option that it is about."""
    try:
        problem = json.loads(text)["error"]
        field = problem.get("field") or ""
        option = _OPTION_OF_FIELD.get(field) or _OPTION_OF_FIELD.get(field.partition(".")[0]) or _typed(field)
        source = explain_token(target) if status == HTTPStatus.UNAUTHORIZED else None
        return " ".join(filter(None, (option and f"{option}:", problem["message"], problem.get("hint"), source)))
    except (ValueError, KeyError, TypeError):
        if location is not None:
            return f"{target.url} redirects to {location}. Use the address there ({target.named_by} names this one)."
        return (
            f"{target.url} answered {status} without an explanation, so it is not a Wakeful server, or a proxy before "
            f"it answers instead. {target.named_by} names this address."
        )


def _reason(text: str) -> str | None:
    """Return the code of the server's error, if it is one of ours."""
    try:
        return json.loads(text)["error"]["code"]
    except (ValueError, KeyError, TypeError):
        return None


def _typed(field: str) -> str | None:
    """Return the option with the name of a field, if the command was called with it."""
    option = f"--{field.replace('_', '-')}"
    return option if any(each.partition("=")[0] == option for each in sys.argv) else None


def _spell(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
