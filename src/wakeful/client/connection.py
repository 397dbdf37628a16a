"""What both clients share: finding the server and its token, HTTP options, errors, and values that they return.

Errors have the server's own words, with the next step.
"""

import json
import os
import tomllib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import httpx2
from platformdirs import user_config_path, user_data_path


class WakefulClientError(Exception):
    """Base of every error of the client."""


class NotReached(WakefulClientError):
    """The server did not answer, or not in time."""


class Refused(WakefulClientError):
    """The server refused a request."""

    def __init__(self, message: str, *, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code  # such as `session_busy`; stable, for programs


class NotSignedIn(Refused):
    """There is no token, or the server does not know it."""


class NotFound(Refused):
    """It does not exist, or belongs to someone else."""


class ServerFailed(Refused):
    """The server failed, or something that it needs does not respond."""


class RunFailed(WakefulClientError):
    """The agent began to answer, and its run failed or was stopped. `text` is what it had said."""

    def __init__(self, message: str, *, code: str, text: str) -> None:
        super().__init__(message)
        self.code = code
        self.text = text


def to_error(status: int, body: object) -> Refused:
    """Return the error of a response, in the words of the server."""
    known = body.get("error") if isinstance(body, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    error: Mapping[str, Any] = known if isinstance(known, Mapping) else {}  # pyright: ignore[reportUnknownVariableType]
    message = " ".join(str(error[part]) for part in ("message", "hint") if error.get(part))
    kind = {401: NotSignedIn, 404: NotFound}.get(status, ServerFailed if status >= 500 else Refused)
    words = message or f"The server answered with the status {status} and no explanation. Is it a Wakeful server?"
    return kind(words, status=status, code=str(error.get("code", f"http_{status}")))


# The address of the server, and the token for it.


DEFAULT_PORT = 8420
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # all addresses of a machine, and the one to connect to
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    url: str  # without a slash at its end
    token: str = field(repr=False)
    data_dir: Path | None = None  # the token is for the running server with this data directory alone

    def authorize(self) -> str:
        """Return the header with the token, for one request. Raises NotReached if another program may be there."""
        if self.data_dir is None:
            return f"Bearer {self.token}"
        running = _find_running(self.data_dir)
        scheme, host, port = _origin(running or "")
        if _origin(self.url) in ((scheme, host, port), (scheme, "localhost", port)):
            return f"Bearer {self.token}"
        where = f"runs at {running}" if running else "does not run; start it with `wakeful serve`"
        raise NotReached(
            f"This machine's token is not sent to {self.url}: its server, with the data directory "
            f"{str(self.data_dir)!r}, {where}. For another server, pass a token or set WAKEFUL_TOKEN."
        )


def find_target(url: str | None, token: str | None, environ: Mapping[str, str] = os.environ) -> Target:
    """Return the server that a program names, or that the environment names, or this machine's."""
    named = url or environ.get("WAKEFUL_URL", "").strip()
    found = (named or f"http://127.0.0.1:{environ.get('WAKEFUL_PORT', '').strip() or DEFAULT_PORT}").rstrip("/")
    parts = urlsplit(found)
    try:
        is_fit = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # its port is not a number
        is_fit = False
    if not is_fit or "@" in parts.netloc:
        raise WakefulClientError(
            f"{found!r} is not the address of a server. Write it like https://wakeful.example.org:8420."
        )
    is_here = is_loopback(parts.hostname or "")
    if parts.scheme == "http" and not is_here:
        raise WakefulClientError(
            f"{found} is on another machine, and http:// would send the token there unencrypted. Use https://, or a "
            "tunnel to this machine."
        )
    if given := (token or environ.get("WAKEFUL_TOKEN", "")).strip():
        return Target(url=found, token=given)
    if (parts.scheme, parts.hostname) == ("http", "localhost"):
        # It may be several addresses, and another program have one of them.
        found = parts._replace(netloc=f"127.0.0.1:{parts.port or 80}").geturl()
    named = environ.get("WAKEFUL_CONFIG_DIR", "").strip()
    folder = Path(named).expanduser() if named else user_config_path("wakeful", appauthor=False)
    try:
        own = (folder / "token").read_text(encoding="ascii").strip() if is_here else ""
    except (OSError, UnicodeDecodeError):
        own = ""
    return Target(url=found, token=own or _refuse(found), data_dir=_find_data_dir(folder, environ))


def _refuse(url: str) -> str:
    raise WakefulClientError(
        f"There is no token for {url}. Create one with `wakeful token add NAME --scope schedule`, and pass it as "
        "Wakeful(token=…) or in the variable WAKEFUL_TOKEN."
    )


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address or `localhost`; `wakeful.core.addresses` has the same rule."""
    try:
        address = ip_address(host)
    except ValueError:
        return host.lower() == "localhost"
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback and "%" not in host


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    return parts.scheme, _ANY.get(host, host), parts.port or _PORTS.get(parts.scheme)


def _find_data_dir(config_dir: Path, environ: Mapping[str, str]) -> Path:
    if named := environ.get("WAKEFUL_DATA_DIR", "").strip():
        return Path(named).expanduser()
    try:
        written = tomllib.loads((config_dir / "wakeful.toml").read_text(encoding="utf-8")).get("data_dir")
    except (OSError, ValueError):
        written = None
    return config_dir / Path(str(written)).expanduser() if written else user_data_path("wakeful", appauthor=False)


def _find_running(data_dir: Path) -> str | None:
    """Return the address of the server that holds the lock of a data directory, as `app/listening.py` writes it."""
    import fcntl  # not at the top: there is none on Windows, and no server

    try:
        with (data_dir / "server.lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None  # its server has ended, and left the file behind
    except BlockingIOError:
        pass
    except OSError:
        return None
    try:
        return str(json.loads((data_dir / "server.lock").read_bytes())["address"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # it is being written


TIMEOUT = 60.0  # seconds without a byte; a stream sends something every 10


def options(target: Target, timeout: float) -> dict[str, Any]:
    """Return the options of an HTTP client for a server."""
    is_encrypted = target.url.lower().startswith("https:")

    def authorize(request: httpx2.Request) -> httpx2.Request:
        request.headers["Authorization"] = target.authorize()
        return request

    return {
        "base_url": target.url,
        "auth": authorize,
        "timeout": timeout,
        # Without TLS it is this machine: no proxy, and no certificates, which take longer to load than a request.
        "trust_env": is_encrypted,
        "verify": is_encrypted,
    }


@contextmanager
def explained(target: Target) -> Generator[None]:
    """Say which server did not answer, and what to do about it."""
    try:
        yield
    except httpx2.TimeoutException:
        raise NotReached(f"The server at {target.url} did not answer in time. Try again later.") from None
    except httpx2.HTTPError as error:
        raise NotReached(
            f"The server at {target.url} cannot be reached: {error or type(error).__name__}. Is it running? "
            "`wakeful status` shows it on its machine."
        ) from error


def read(response: httpx2.Response) -> Any:
    """Return the JSON of an answer, or raise the server's error."""
    if not response.is_success:
        raise refusal(response)
    return response.json()


def refusal(response: httpx2.Response) -> Refused:
    try:
        body = response.json()
    except ValueError:
        body = None
    return to_error(response.status_code, body)


# Values that the client returns.


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    id: str
    name: str
    description: str

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Self:
        return cls(id=body["id"], name=body["name"], description=body["description"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer of an agent. Its session takes the next message."""

    text: str
    session_id: str
    run_id: str
    reasoning: str = ""
    is_cut_off: bool = False  # it ended at a limit: of the model's output, the run or the budget
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """A promise to wake an agent."""

    id: str
    agent_id: str
    session_id: str | None
    at: datetime  # the next planned time
    instructions: str
    status: str  # pending, queued, running, fired, failed, cancelled, skipped, superseded
    comment: str = ""
    interval_seconds: int | None = None
    cron: str | None = None

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Self:
        return cls(
            id=body["id"],
            agent_id=body["agent_id"],
            session_id=body["session_id"],
            at=datetime.fromisoformat(body["nominal_at"]),
            instructions=body["instructions"],
            status=body["status"],
            comment=body["comment"],
            interval_seconds=body["interval_seconds"],
            cron=body["cron"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision about a planned time of a wake, in a sentence."""

    at: datetime
    code: str
    text: str
    run_id: str | None = None

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Self:
        return cls(
            at=datetime.fromisoformat(body["at"]), code=body["code"], text=body["text"], run_id=body.get("run_id")
        )


# The events of a streamed answer.


class AnswerReader:
    """Collects an answer from the lines of its stream."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._finish = "stop"
        self._usage: Mapping[str, int] = {}
        self._is_done = False

    def read(self, line: str) -> str:
        """Read one line, and return the text that it adds."""
        if not line.startswith("data:"):
            return ""  # a comment, which keeps the connection open
        data = line[5:].strip()
        if data == "[DONE]":
            self._is_done = True
            return ""
        return self._read_event(json.loads(data))

    @property
    def answer(self) -> Answer:
        """Return the whole answer, once the stream has ended."""
        if not self._is_done:
            raise NotReached(
                "The connection ended before the answer did. The session has what was written so far; ask again, or "
                "look there."
            )
        return Answer(
            text="".join(self._texts),
            session_id=self._headers["X-Wakeful-Session"],
            run_id=self._headers["X-Wakeful-Run"],
            reasoning="".join(self._thoughts),
            is_cut_off=self._finish == "length",
            input_tokens=self._usage.get("prompt_tokens", 0),
            output_tokens=self._usage.get("completion_tokens", 0),
        )

    def _read_event(self, event: Mapping[str, Any]) -> str:
        if "error" in event:
            error = event["error"]
            raise RunFailed(error["message"], code=error["code"], text="".join(self._texts))
        self._usage = event.get("usage") or self._usage
        added = ""
        for choice in event["choices"]:
            self._finish = choice["finish_reason"] or self._finish
            self._thoughts.append(choice["delta"].get("reasoning_content") or "")
            added += choice["delta"].get("content") or ""
        self._texts.append(added)
        return added
