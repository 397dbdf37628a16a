"""The address of the server, and the token for it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from platformdirs import user_config_path

from wakeful.client.errors import WakefulClientError

DEFAULT_PORT = 8420


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    url: str  # without a slash at its end
    token: str = field(repr=False)


def find_target(url: str | None, token: str | None, environ: Mapping[str, str] = os.environ) -> Target:
    """Return the server that a program names, or that the environment names, or this machine's."""
    named = url or environ.get("WAKEFUL_URL", "").strip()
    found = (named or f"http://127.0.0.1:{environ.get('WAKEFUL_PORT', '').strip() or DEFAULT_PORT}").rstrip("/")
    parts = urlsplit(found)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise WakefulClientError(
            f"{found!r} is not the address of a server. Write it like https://wakeful.example.org:8420."
        )
    is_here = _is_loopback(parts.hostname)
    if parts.scheme == "http" and not is_here:
        raise WakefulClientError(
            f"{found} is on another machine, and http:// would send the token there unencrypted. Use https://, or a "
            "tunnel to this machine."
        )
    return Target(url=found, token=_find_token(found, token, environ, is_here=is_here))


def _find_token(url: str, token: str | None, environ: Mapping[str, str], *, is_here: bool) -> str:
    given = (token or environ.get("WAKEFUL_TOKEN", "")).strip()
    if given:
        return given
    named = environ.get("WAKEFUL_CONFIG_DIR", "").strip()
    folder = Path(named).expanduser() if named else user_config_path("wakeful", appauthor=False)
    try:
        # The token of this machine's server is sent to no other machine.
        return (folder / "token").read_text(encoding="ascii").strip() if is_here else _refuse(url)
    except (OSError, UnicodeDecodeError):
        return _refuse(url)


def _refuse(url: str) -> str:
    raise WakefulClientError(
        f"There is no token for {url}. Create one with `wakeful token add NAME --scope schedule`, and pass it as "
        "Wakeful(token=…) or in the variable WAKEFUL_TOKEN."
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
