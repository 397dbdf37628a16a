"""Chooses the server that a command talks to, and the token for it.

Saved servers are in `contexts.json` in the config directory, which only its owner can read.
"""

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from wakeful.cli.options import Asked, read_options
from wakeful.cli.output import NOT_REACHED, WRONG, fail
from wakeful.core.addresses import is_loopback
from wakeful.core.files import Running, find_running
from wakeful.core.sources import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    TOKEN_FILE,
    as_variable,
    default_data_dir,
    find_config_dir,
    open_if_file,
    read_values,
    read_variables,
    sort,
)

if TYPE_CHECKING:
    from wakeful.config.settings import Settings


_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # all addresses of a machine, and the one to connect to
_PORTS = {"http": 80, "https": 443}
_KEPT = "the config directory"


class NotRunning(ConnectionRefusedError):
    """The lock file says that this machine's server does not run at an address, so its token is not sent there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server, and how to reach it."""

    url: str  # without a slash at its end
    token: str = field(repr=False)
    token_from: str  # for messages: the place where the token was found
    named_by: str  # for messages: the place where the address was found
    ca: Path | None = None
    certificate: Path | None = None  # of this machine's server, whatever name it is for
    is_local: bool = False  # it is the server of this machine's settings
    is_own_token: bool = False  # nobody named the token: it is for this machine's running server alone

    @property
    def parts(self) -> SplitResult:
        return urlsplit(self.url)

    def authorize(self) -> str:
        """Return the header with the token, for one request. Raises NotRunning if another program may be there."""
        running = find_running_server() if self.is_own_token else None
        if self.is_own_token and (running is None or not _is_at(self.url, running)):
            raise NotRunning(
                f"the one with the data directory {str(_data_dir())!r} does not run there, and this machine's token is "
                "sent to no other program."
            )
        return f"Bearer {self.token}"


def find_target(kept: Callable[[str], str | None] = lambda _url: None) -> Target:
    """Return the server that the options, the environment or the current context name; else this machine's.

    `kept` returns the token for an address that is used if there is no other. Ends the command if the choice is not
    clear, or there is no token for it.
    """
    asked = read_options()
    if asked.url is not None and asked.context is not None:
        fail("--url and --context name two servers. Give one of them.", WRONG)
    if asked.url is not None:
        return _at(asked.url, "--url", asked, kept)
    if asked.context is not None:
        return _in_context(asked.context, "--context", asked, kept)
    if url := os.environ.get("WAKEFUL_URL", "").strip():
        return _at(url, "WAKEFUL_URL", asked, kept)
    if name := os.environ.get("WAKEFUL_CONTEXT", "").strip():
        return _in_context(name, "WAKEFUL_CONTEXT", asked, kept)
    return _in_context(load_contexts().current, "`wakeful context use`", asked, kept)


def find_local(asked: Asked, kept: Callable[[str], str | None] = lambda _url: None) -> Target:
    """Return the server of this machine, which the settings and the lock file describe."""
    url = local_url()
    if url is None:
        read_settings()  # may show the reason: a misspelt setting
        fail("No server runs here: the port is 0, which is any free one. Start it with `wakeful serve`.", NOT_REACHED)
    token, token_from, is_own = (*named, False) if (named := _asked_token(asked)) else _local_token(kept(url))
    return Target(
        url=url,
        token=token,
        token_from=token_from,
        named_by="the settings of this machine",
        ca=asked.ca,
        certificate=_local_certificate(),
        is_local=True,
        is_own_token=is_own,
    )


def target_of(running: Running) -> Target | None:
    """Return the running server of this machine with this machine's token; None if there is no token."""
    if not os.environ.get("WAKEFUL_TOKEN", "").strip() and not (find_config_dir(os.environ) / TOKEN_FILE).exists():
        return None
    token, token_from, is_own = _local_token()
    return Target(
        url=reachable(running.address),
        token=token,
        token_from=token_from,
        named_by="its lock file",
        certificate=_local_certificate(),
        is_local=True,
        is_own_token=is_own,
    )


def find_running_server() -> Running | None:
    """Return the server that runs with this machine's data directory, whatever its port is."""
    return find_running(_data_dir())


def refuse_remote(what: str, *, also_chosen: bool = False) -> None:
    """End the command if the command line names a server: it works on this machine alone.

    `also_chosen`: also if the environment or the current context does, since the user may think of that one.
    """
    asked = read_options()
    if asked.is_server_named() and asked.context != LOCAL:
        fail(f"{what} this machine, so it does not go with --url or --context. Run it on the server's machine.", WRONG)
    if also_chosen and is_remote_chosen():
        fail(
            f"{what} this machine, and your commands use another server (WAKEFUL_URL or a context). Run it on that "
            "server's machine; for this machine, write `wakeful --context local …`.",
            WRONG,
        )


def is_remote_chosen() -> bool:
    """Return whether commands talk to a server that the options, the environment or a context name."""
    asked = read_options()
    names = (asked.url, os.environ.get("WAKEFUL_URL", "").strip())
    if any(names) and asked.context is None:
        return True
    name = asked.context or os.environ.get("WAKEFUL_CONTEXT", "").strip() or load_contexts().current
    return name != LOCAL


def read_settings(*, host: str | None = None, port: int | None = None) -> "Settings":
    """Return all settings, or end the command with the errors in them."""
    from wakeful.config.settings import ConfigError, load_settings

    try:
        return load_settings(host=host, port=port)
    except ConfigError as error:
        fail(str(error))


def read_token_file(path: Path) -> str:
    """Return the token in a file, or end the command."""
    try:
        token = path.expanduser().read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        fail(f"The token file {str(path)!r} cannot be read: {getattr(error, 'strerror', None) or error}.")
    return token or fail(f"The token file {str(path)!r} is empty.")


def check_url(url: str, *, is_insecure: bool) -> str:
    """Return the address of a server in its normal form, or end the command with what is wrong about it."""
    parts = urlsplit(url)
    try:
        is_fit = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_fit = False
    if not is_fit or parts.query or parts.fragment or parts.username or parts.password:
        shown = "That" if "@" in url else repr(url)  # a password may be before the @
        fail(f"{shown} is not the address of a server. Write it like https://wakeful.example.org:8420.", WRONG)
    host = parts.hostname or ""
    if parts.scheme == "http" and not is_insecure and not is_loopback(_ANY.get(host, host)):
        fail(
            f"{url} is on another machine, and http:// would send the token there unencrypted. Use https://, or add "
            "--insecure if every machine on the way is yours.",
            WRONG,
        )
    return parts.geturl().rstrip("/")  # with a scheme in lower case


def local_url() -> str | None:
    """Return the address of this machine's server; None if it takes any free port and does not run."""
    problems: list[str] = []
    given = read_values(os.environ, ("host", "port"), (), problems)
    port = str(given.get("port", DEFAULT_PORT))
    if problems or not port.isdecimal():
        read_settings()
    # A port in the environment is for this command. One in the file may differ from that of the running server.
    is_port_named = os.environ.get("WAKEFUL_PORT", "").strip() not in ("", "0")
    running = find_running_server()
    if running is not None and (not is_port_named or origin(running.address)[2] == int(port)):
        return reachable(running.address)
    return None if port == "0" else reachable(_join(str(given.get("host", DEFAULT_HOST)), int(port)))


def origin(url: str) -> tuple[str, str, int | None]:
    """Return the scheme, host and port of an address; that of all addresses of this machine is at loopback."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return parts.scheme, _ANY.get(host, host), parts.port or _PORTS.get(parts.scheme)


def reachable(address: str) -> str:
    """Return an address that a client can connect to: a server that listens on all addresses is at loopback too."""
    scheme, host, port = origin(address)
    return _join("127.0.0.1" if host == "localhost" else host, port or DEFAULT_PORT, scheme)


def _in_context(name: str, named_by: str, asked: Asked, kept: Callable[[str], str | None]) -> Target:
    if name == LOCAL:
        return find_local(asked, kept)
    context = load_contexts().get(name)
    token, token_from = _asked_token(asked) or (context.token, f"the context {name!r}")
    return Target(
        url=check_url(context.url, is_insecure=context.insecure or asked.insecure),
        token=token,
        token_from=token_from,
        named_by=f"the context {name!r}, by {named_by}",
        ca=asked.ca or (Path(context.ca) if context.ca else None),
    )


def _at(url: str, named_by: str, asked: Asked, kept: Callable[[str], str | None]) -> Target:
    url = check_url(url, is_insecure=asked.insecure)
    if found := _asked_token(asked) or _environment_token():
        return Target(url=url, token=found[0], token_from=found[1], named_by=named_by, ca=asked.ca)
    saved: list[tuple[str, Context]] = [(name, each) for name, each in load_contexts().saved.items() if each.url == url]
    if saved:
        name, context = saved[0]
        ca = asked.ca or (Path(context.ca) if context.ca else None)
        return Target(url=url, token=context.token, token_from=f"the context {name!r}", named_by=named_by, ca=ca)
    running = find_running_server()
    if running is None or not _is_at(url, running):
        if token := kept(url):
            return Target(url=url, token=token, token_from=_KEPT, named_by=named_by, ca=asked.ca)
        where = f"runs at {running.address}" if running else "does not run; start it with `wakeful serve`"
        fail(
            f"There is no token for {url}. Save it once with `wakeful context add NAME {url}`, which asks for the "
            "token, or give it with --token-file or WAKEFUL_TOKEN. This machine's own token is sent to its server "
            f"alone: the one with the data directory {str(_data_dir())!r} {where}."
        )
    token, token_from, is_own = _local_token(kept(url))
    if (
        is_own and urlsplit(url).scheme == "http"
    ):  # `localhost` may be several addresses, and another program have one of them
        url = reachable(running.address) + urlsplit(url).path.rstrip("/")
    return Target(url=url, token=token, token_from=token_from, named_by=named_by, ca=asked.ca, is_own_token=is_own)


def _asked_token(asked: Asked) -> tuple[str, str] | None:
    if asked.token is not None and asked.token_file is not None:
        fail("--token and --token-file give two tokens. Give one of them.", WRONG)
    if asked.token is not None:
        return asked.token.strip(), "--token"
    if asked.token_file is not None:
        return read_token_file(asked.token_file), "--token-file"
    return None


def _environment_token() -> tuple[str, str] | None:
    problems: list[str] = []
    given = sort(read_variables(os.environ), "the environment", as_variable, ("token",), ("token",), problems)
    if "token" not in given:
        return None
    token = open_if_file(given["token"], problems)
    return (str(token), given["token"].key) if token and not problems else fail("\n".join(problems))


def _local_token(kept: str | None = None) -> tuple[str, str, bool]:
    """Return the token of this machine, where it is from, and whether it is its own: the user has not named it."""
    if named := _environment_token():
        return *named, False
    problems: list[str] = []
    given = read_values(os.environ, ("token",), ("token",), problems).get("token")
    if problems:
        read_settings()
    path = find_config_dir(os.environ) / TOKEN_FILE
    if given:
        return str(given), "the settings of this machine", True
    if not path.exists():
        if kept:
            return kept, _KEPT, False
        read_settings()  # may show the reason: a misspelt setting
        fail(
            f"There is no token in {path.parent}. Start the server once with `wakeful serve`, or set WAKEFUL_TOKEN. "
            "At its first start a server has one as soon as it prints the login link."
        )
    return read_token_file(path), str(path), True


def _local_certificate() -> Path | None:
    given = read_values(os.environ, ("tls_certificate",), (), []).get("tls_certificate")
    return Path(str(given)).expanduser() if given else None


def _data_dir() -> Path:
    given = read_values(os.environ, ("data_dir",), (), [])
    return Path(str(given.get("data_dir") or default_data_dir())).expanduser().absolute()


def _is_at(url: str, running: Running) -> bool:
    """Return whether an address is the one that a server listens on, which no other program can have meanwhile."""
    scheme, host, port = origin(running.address)
    return origin(url) in ((scheme, host, port), (scheme, "localhost", port))


def _join(host: str, port: int, scheme: str = "http") -> str:
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


# The file of saved servers, `contexts.json` in the config directory, which only its owner can read.


FILE_NAME = "contexts.json"
LOCAL = "local"  # the server of this machine's settings; always there


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A saved server."""

    url: str
    token: str = field(repr=False)
    ca: str | None = None
    insecure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Contexts:
    """All saved servers, and the one that commands use without being asked."""

    current: str = LOCAL
    saved: dict[str, Context] = field(default_factory=dict[str, Context])

    def get(self, name: str) -> Context:
        """Return a context, or end the command if there is none of that name."""
        if name not in self.saved:
            fail(f"There is no context {name!r}. `wakeful context ls` shows these: {', '.join([LOCAL, *self.saved])}.")
        return self.saved[name]


def contexts_path() -> Path:
    return find_config_dir(os.environ) / FILE_NAME


def load_contexts() -> Contexts:
    """Read the file; without one, there is only this machine."""
    path = contexts_path()
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        saved = {str(name): Context(**each) for name, each in found["contexts"].items()}
        return Contexts(current=str(found["current"]), saved=saved)
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}.")
    except (ValueError, KeyError, TypeError, AttributeError):
        fail(f"{path} is damaged. Delete it, and add your servers again with `wakeful context add`.")


def save_contexts(contexts: Contexts) -> None:
    """Replace the file in one step."""
    from wakeful.core.files import replace_file

    path = contexts_path()
    text = {"current": contexts.current, "contexts": {name: asdict(each) for name, each in contexts.saved.items()}}
    try:
        replace_file(path, f"{json.dumps(text, indent=2)}\n".encode())
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}. Nothing was changed.")
