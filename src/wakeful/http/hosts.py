"""Checks of the Host and Origin headers, against DNS rebinding and requests of other sites.

A page of any site can make a browser send requests here, and a site can let its own name resolve to 127.0.0.1. So the
Host header must name this server, and the Origin of a page must be the same host.

- Loopback names and the bound address are valid with the port that the server listens on.
- A host from the settings is valid with every port, because only the operator of a proxy or a port mapping knows the
  public one. TLS may end there too, so both schemes are valid.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address

from wakeful.core.errors import Forbidden, Invalid

LOOPBACK = ("localhost", "127.0.0.1", "::1")
DEFAULT_PORTS = {"http": 80, "https": 443}

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9_.-]+))(?::([0-9]{1,5}))?", re.ASCII)


class UnreadableHost(Invalid):
    code = "unreadable_host"

    def __init__(self) -> None:
        super().__init__("A request must have exactly one valid Host header.")


class WrongHost(Forbidden):
    code = "wrong_host"

    def __init__(self, host: str) -> None:
        super().__init__(
            f"The host {host!r} is not one of this server's.",
            hint="Use the address it printed at its start, or add the host's name to WAKEFUL_ALLOWED_HOSTS.",
        )


class WrongOrigin(Forbidden):
    code = "wrong_origin"

    def __init__(self, origin: str) -> None:
        super().__init__(
            f"A page from {origin!r} may not use this server.",
            hint="Only its own page may. A proxy must pass the Host header on unchanged.",
        )


@dataclass(frozen=True, slots=True)
class Host:
    """The host in a header."""

    name: str  # lower case; an IPv6 address without its brackets
    port: int | None  # None: the default port of the scheme

    def at(self, scheme: str) -> tuple[str, int | None]:
        return (self.name, self.port if self.port is not None else DEFAULT_PORTS.get(scheme))


class AllowedHosts:
    """The host names of a server."""

    def __init__(self, bound: str, allowed: Iterable[str]) -> None:
        self._own = frozenset(LOOPBACK) | ({_normal(bound)} - {"0.0.0.0", "::"})
        self._allowed = frozenset(_normal(name) for name in allowed)

    def check(self, header: str, scheme: str, port: int | None) -> Host:
        """Refuse a Host header that does not name this server and its port."""
        host = parse_host(header)
        if host is None:
            raise UnreadableHost
        if host.name not in self._allowed and not (host.name in self._own and host.at(scheme)[1] == port):
            raise WrongHost(header)
        return host

    def check_origin(self, origin: str, host: Host, scheme: str) -> None:
        """Refuse an Origin that is not the host of the request."""
        claimed, _, rest = origin.lower().partition("://")
        named = parse_host(rest)
        schemes = ("http", "https") if host.name in self._allowed else (scheme,)
        if named is None or claimed not in schemes or named.at(claimed) != host.at(claimed):
            raise WrongOrigin(origin)


def parse_host(text: str) -> Host | None:
    """Parse `name`, `name:port` or `[address]:port`."""
    found = _HOST.fullmatch(text.lower())
    if found is None:
        return None
    address, name, port = found.groups()
    try:
        return Host(name or str(ip_address(address)), int(port) if port else None)
    except ValueError:
        return None


def _normal(name: str) -> str:
    try:
        return str(ip_address(name))
    except ValueError:
        return name.lower()
