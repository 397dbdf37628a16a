"""The address of the server, and the token for it."""

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from platformdirs import user_config_path, user_data_path

from wakeful.client.errors import NotReached, WakefulClientError

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
    """Return whether a host is a loopback address or `localhost`; as `wakeful.sources` does, which is not imported."""
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
    """Return the address of the server that holds the lock of a data directory, as the server's `server_lock` does."""
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
