"""Connections to endpoints of models: every address is checked when connecting, and redirects are not followed."""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import httpcore2
import httpx2

from wakeful.domain.models.addresses import check_ip, is_plain_http
from wakeful.service.resources import shortage

CONNECT_SECONDS = 30.0
KEEPALIVE_SECONDS = 60.0


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Opens TCP connections to addresses that pass the check, and to exactly those: DNS cannot change in between."""

    def __init__(self, *, has_plain_key: bool, is_loopback_only: bool = False) -> None:
        self._inner: Any = httpcore2.AnyIOBackend()  # untyped, because anyio is optional there
        self._has_plain_key = has_plain_key
        self._is_loopback_only = is_loopback_only

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  (the library's signature)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        *first, last = await self._addresses(host)
        for address in first:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):  # such as an IPv6 address without IPv6
                continue
        return await self._inner.connect_tcp(last, port, timeout, local_address, socket_options)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _addresses(self, host: str) -> list[str]:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            if (lacks := shortage(error)) is not None:
                raise lacks from error
            raise httpcore2.ConnectError(f"the host {host!r} has no address") from error
        addresses = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
        for address in addresses:
            parsed = ipaddress.ip_address(address.partition("%")[0])
            check_ip(host, parsed, has_plain_key=self._has_plain_key)
            if self._is_loopback_only and not parsed.is_loopback:
                raise httpcore2.ConnectError(f"the host {host!r} is not this machine")
        return addresses


class CheckedTransport(httpx2.AsyncHTTPTransport):
    """A connection pool whose connections are checked."""

    def __init__(self, backend: CheckedBackend) -> None:
        super().__init__(verify=tls_context())
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls_context(),
            max_connections=None,
            keepalive_expiry=KEEPALIVE_SECONDS,
            network_backend=backend,
        )


def make_client(
    address: str,
    headers: Mapping[str, str],
    *,
    has_key: bool,
    is_checked: bool = True,
    is_loopback_only: bool = False,
    timeout: httpx2.Timeout | None = None,
) -> httpx2.AsyncClient:
    """Make a client for one endpoint; `timeout` limits connecting alone if it is not given."""
    timeout = timeout or httpx2.Timeout(None, connect=CONNECT_SECONDS)
    if not is_checked:
        limits = httpx2.Limits(max_connections=None, keepalive_expiry=KEEPALIVE_SECONDS)
        return httpx2.AsyncClient(headers=headers, timeout=timeout, limits=limits, verify=tls_context())
    is_plain = is_plain_http(address)
    backend = CheckedBackend(has_plain_key=has_key and is_plain, is_loopback_only=is_loopback_only)
    # A proxy of the environment would resolve the name itself, past the check. It is used with https, where the
    # certificate identifies the host that the key goes to.
    return httpx2.AsyncClient(
        headers=headers,
        timeout=timeout,
        transport=CheckedTransport(backend),
        trust_env=not is_plain and not is_loopback_only,
        follow_redirects=False,
    )


@cache
def tls_context() -> ssl.SSLContext:
    """Return the TLS context; the certificates are read once."""
    return httpx2.create_ssl_context()
