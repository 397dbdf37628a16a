"""Outgoing connections: a host is checked, and exactly the checked address is connected to."""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, Sequence

import httpx2

from wakeful.core.addresses import is_public
from wakeful.core.errors import Forbidden, Unavailable
from wakeful.core.resources import shortage

Resolve = Callable[[str], Awaitable[Sequence[str]]]  # a host name to its addresses


class HostUnknown(Unavailable):
    code = "host_unknown"

    def __init__(self, host: str) -> None:
        super().__init__(f"The host {host!r} has no address. Check its spelling, or try another URL.")


class AddressRefused(Forbidden):
    code = "address_refused"

    def __init__(self, host: str, address: str) -> None:
        where = f"The host {host!r}" if host == address else f"The host {host!r} has the address {address}, which"
        super().__init__(
            f"{where} is not on the public internet, so it is not fetched. Use a public URL, or ask the owner of this "
            "server to allow the host."
        )


async def resolve(host: str) -> list[str]:
    """Resolve a host name. The system also resolves unusual forms: 127.1, 0x7f.1, 2130706433."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        if (lacks := shortage(error)) is not None:
            raise lacks from error
        return []
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


class PinnedTransport(httpx2.AsyncBaseTransport):
    """Resolves a host once, checks every address, and connects to one of them: DNS cannot change in between."""

    def __init__(self, *, resolve: Resolve, private_hosts: frozenset[str], tls: ssl.SSLContext | None) -> None:
        self._resolve = resolve
        self._private_hosts = frozenset(_plain(host) for host in private_hosts)
        self._inner = httpx2.AsyncHTTPTransport(verify=tls or True, trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        *first, last = await self._addresses(request.url.raw_host.decode("ascii"))
        for address in first:
            try:
                return await self._inner.handle_async_request(_pinned(request, address))
            except (httpx2.ConnectError, httpx2.ConnectTimeout):  # such as an IPv6 address without IPv6
                continue
        return await self._inner.handle_async_request(_pinned(request, last))

    async def _addresses(self, host: str) -> list[str]:
        found = await self._resolve(host)
        if not found:
            raise HostUnknown(host)
        if _plain(host) in self._private_hosts:
            return list(found)
        for address in found:
            # One private address is enough: a name with both kinds is an attack, or split-horizon DNS.
            if not is_public(ipaddress.ip_address(address)):
                raise AddressRefused(host, address)
        return list(found)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _pinned(request: httpx2.Request, address: str) -> httpx2.Request:
    """Return the request with an address as its target, and the host's name in the Host header and in TLS."""
    name = _plain(request.url.raw_host.decode("ascii"))
    headers = request.headers.copy()
    # Connections are pooled by address, which hosts may share. None is reused, so that none serves a host whose
    # certificate was not checked.
    headers["connection"] = "close"
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=headers,
        stream=request.stream,
        extensions=request.extensions | {"sni_hostname": name},
    )


def _plain(host: str) -> str:
    return host.lower().rstrip(".")


class PrivateAddress(Forbidden):
    code = "private_address"

    def __init__(self, host: str, field: str = "url") -> None:
        super().__init__(
            f"The host {host!r} is not on the public internet. The owner of this server can allow it in the setting "
            "fetch_private_hosts.",
            field=field,
        )


async def check_public(host: str, private_hosts: Collection[str], field: str = "url") -> None:
    """Refuse a host that resolves to a private address, unless the owner of the server allows it.

    For an address that is saved; the sending process checks each connection again.
    """
    if host in private_hosts:
        return
    for address in await resolve(host):  # none if name resolution is down just now; sending will show it
        if not is_public(ipaddress.ip_address(address.partition("%")[0])):
            raise PrivateAddress(host, field)
