"""Reverse proxies in front of the server: whose request it is, and under which path the page is.

`X-Forwarded-For` and `X-Forwarded-Proto` count only when they come from an address in the setting `trusted_proxies`:
anyone can write them. `X-Forwarded-Host` never counts; a proxy passes the Host header on unchanged.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

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
