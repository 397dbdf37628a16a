"""Checks of the Host and Origin headers, and reverse proxies in front of the server.

A page of any site can make a browser send requests here, and a site can let its own name resolve to 127.0.0.1. So the
Host header must name this server, and the Origin of a page must be the same host.

- Loopback names and the bound address are valid with the port that the server listens on.
- A host from the settings is valid with every port, because only the operator of a proxy or a port mapping knows the
  public one. TLS may end there too, so both schemes are valid.

`X-Forwarded-For` and `X-Forwarded-Proto` count only when they come from an address in the setting `trusted_proxies`:
anyone can write them. `X-Forwarded-Host` never counts; a proxy passes the Host header on unchanged.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

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


# Reverse proxies in front of the server: whose request it is, and under which path the page is.
#
# `X-Forwarded-For` and `X-Forwarded-Proto` count only when they come from an address in the setting `trusted_proxies`:
# anyone can write them. `X-Forwarded-Host` never counts; a proxy passes the Host header on unchanged.


_SECURE = {"http": "https", "ws": "wss"}


class TrustedProxies:
    """The addresses whose forwarded headers are believed."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = [ip_network(each, strict=False) for each in networks]

    def __bool__(self) -> bool:
        return bool(self._networks)

    def __contains__(self, address: str) -> bool:
        found = _parse(address)
        return found is not None and any(found in network for network in self._networks)

    def find_client(self, peer: str, forwarded: Iterable[str]) -> str:
        """Return the address that sent a request: the last one in the chain that is not a trusted proxy.

        Whatever stands further to the left was written by that address, so it proves nothing.
        """
        chain = [each.strip() for header in forwarded for each in header.split(",")]
        client = peer
        for entry in reversed(chain):
            address = _parse(_without_port(entry))
            if client not in self or address is None:
                break
            client = str(address)
        return client


@dataclass(frozen=True, slots=True)
class BehindProxies:
    """ASGI middleware that puts the client's address and scheme into the scope, and takes the base path off the path.

    A proxy may also have taken it off itself, so a path without it is valid too.
    """

    app: ASGIApp
    trusted: TrustedProxies
    base_path: str  # such as "/agents", or ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            scope = {**scope, **self._find_client(scope), **self._find_path(scope)}
        await self.app(scope, receive, send)

    def _find_client(self, scope: Scope) -> dict[str, object]:
        peer = scope.get("client")
        if peer is None or peer[0] not in self.trusted:
            return {}
        headers = Headers(scope=scope)
        client = self.trusted.find_client(peer[0], headers.getlist("x-forwarded-for"))
        schemes = [each.strip().lower() for each in ",".join(headers.getlist("x-forwarded-proto")).split(",")]
        scheme = _SECURE.get(scope["scheme"], scope["scheme"]) if schemes[-1] == "https" else scope["scheme"]
        return {"client": (client, 0), "scheme": scheme}

    def _find_path(self, scope: Scope) -> dict[str, object]:
        path: str = scope["path"]
        if not self.base_path or not (path == self.base_path or path.startswith(f"{self.base_path}/")):
            return {}
        raw = scope.get("raw_path")
        rest = path.removeprefix(self.base_path) or "/"
        return {"path": rest, "raw_path": raw and (raw.removeprefix(self.base_path.encode()) or b"/")}


def _without_port(entry: str) -> str:
    """Return the address of an entry such as `192.0.2.1:4711` or `[2001:db8::1]:4711`."""
    if entry.startswith("["):
        return entry[1:].partition("]")[0]
    return entry.partition(":")[0] if entry.count(":") == 1 else entry


def _parse(address: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(address)
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found
