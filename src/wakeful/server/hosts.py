"""Which names this server answers to, and which pages may talk to it.

A page of any site can make a browser send requests here, and a site can make its own name point to 127.0.0.1. So a
request must name one of our hosts, and a page that sends one must come from that very host.

- Loopback names and the address we are bound to count with the port we listen on.
- A host from the settings counts with every port: only the operator of the proxy or the port mapping knows which one
  people see. TLS may end there too, so either scheme counts.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address

from wakeful.domain.errors import Forbidden, Invalid

LOOPBACK = ("localhost", "127.0.0.1", "::1")
DEFAULT_PORTS = {"http": 80, "https": 443}

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9_.-]+))(?::([0-9]{1,5}))?", re.ASCII)


class UnreadableHost(Invalid):
    code = "unreadable_host"

    def __init__(self) -> None:
        super().__init__("A request must have exactly one Host header that names a host.")


class WrongHost(Forbidden):
    code = "wrong_host"

    def __init__(self, host: str) -> None:
        super().__init__(
            f"This server does not answer to the host {host!r}.",
            hint="Use the address it printed at its start, or add the host's name to WAKEFUL_ALLOWED_HOSTS.",
        )


class WrongOrigin(Forbidden):
    code = "wrong_origin"

    def __init__(self, origin: str) -> None:
        super().__init__(
            f"A page from {origin!r} may not talk to this server.",
            hint="Only its own page may. A proxy in front must pass on the Host header as it came.",
        )


@dataclass(frozen=True, slots=True)
class Host:
    """A host as a header names it."""

    name: str  # lower case; an IPv6 address without its brackets
    port: int | None  # None: whichever is usual for the scheme

    def at(self, scheme: str) -> tuple[str, int | None]:
        return (self.name, self.port if self.port is not None else DEFAULT_PORTS.get(scheme))


class AllowedHosts:
    """The names a server answers to."""

    def __init__(self, bound: str, allowed: Iterable[str]) -> None:
        self._own = frozenset(LOOPBACK) | ({_normal(bound)} - {"0.0.0.0", "::"})
        self._allowed = frozenset(_normal(name) for name in allowed)

    def check(self, header: str, scheme: str, port: int | None) -> Host:
        """Refuse a Host header that does not mean us, at the port we listen on."""
        host = parse_host(header)
        if host is None:
            raise UnreadableHost
        if host.name not in self._allowed and not (host.name in self._own and host.at(scheme)[1] == port):
            raise WrongHost(header)
        return host

    def check_origin(self, origin: str, host: Host, scheme: str) -> None:
        """Refuse an Origin that is not the very host the request went to."""
        claimed, _, rest = origin.lower().partition("://")
        named = parse_host(rest)
        schemes = ("http", "https") if host.name in self._allowed else (scheme,)
        if named is None or claimed not in schemes or named.at(claimed) != host.at(claimed):
            raise WrongOrigin(origin)


def parse_host(text: str) -> Host | None:
    """Read `name`, `name:port` or `[address]:port`."""
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
