"""Caps on connections, and timeouts for unfinished requests (slowloris).

A connection is unauthenticated until it has sent a valid token. Their number is capped, in total and per address; at
the cap, a new one replaces the oldest: a client with a token sends it within milliseconds. After that it belongs to the
token of its last request, and each token has caps of its own. When all connections together reach their cap, the token
or address that has most of them loses one. uvicorn itself has no timeout for the head of a request, nor for clients
that read nothing.
"""

import asyncio
import fcntl
import logging
import socket
import struct
import termios
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from wakeful.core.identity import TooManyConnections, TooManySockets, TooManyWaits
from wakeful.http.hosts import TrustedProxies
from wakeful.http.tries import network_of

log = logging.getLogger(__name__)

MIN_RATE = 4096  # bytes per second of a body, on average, after the first seconds
UNREAD_SECONDS = 60.0  # without the client reading anything of what was sent
_UNREAD_SECONDS_AT_STOP = 1.0
_UNAUTHENTICATED_SECONDS = 60.0  # for a request without a token, from its head to the end of the response
_CHECK_EVERY = 1.0
_BYTES_ACKED_AT, _TCP_INFO_BYTES = 120, 128


class BodyTooSlow(HTTPException):
    def __init__(self) -> None:
        super().__init__(
            408,
            "The body of the request arrived too slowly. Send it again, without pauses.",
            headers={"Connection": "close"},
        )


@dataclass(eq=False, slots=True, kw_only=True)
class ClientConnection:
    """One connection, from accept to close."""

    transport: asyncio.Transport
    holder: str  # the token of its last request, or until there is one the network of its address
    since: float  # when it started to wait for a request, or its request started
    is_busy: bool = False  # a request is in progress, or a WebSocket is open
    is_socket: bool = False
    is_waiting: bool = False  # its request waits for a run or a log line
    taken: int = 0  # bytes, at the last check
    taken_at: float  # when the client last read something, or there was nothing to read

    @property
    def is_idle(self) -> bool:
        return not self.is_busy and self.transport.get_write_buffer_size() == 0


class Connections:
    """All connections of one server."""

    def __init__(
        self,
        *,
        most: int,
        most_unauthenticated: int,
        most_per_address: int,
        most_per_token: int,
        most_sockets_per_token: int,
        most_waits_per_token: int,
        seconds: float,
        trusted: TrustedProxies | None = None,
    ) -> None:
        self._most = most
        self._most_unauthenticated = most_unauthenticated
        self._most_per_address = most_per_address
        self._most_per_token = most_per_token
        self._most_sockets_per_token = most_sockets_per_token
        self._most_waits_per_token = most_waits_per_token
        self._trusted = trusted or TrustedProxies(())
        self.seconds = seconds
        self._unread_seconds: float | None = None
        self.all: set[ClientConnection] = set()
        # The oldest first: dicts are ordered sets here.
        self.unauthenticated: dict[ClientConnection, None] = {}
        self.by_holder: dict[str, dict[ClientConnection, None]] = {}
        self._task: asyncio.Task[None] | None = None

    def add(self, transport: asyncio.Transport) -> ClientConnection:
        """Register a new connection. If there are too many, another one is closed, never the new one."""
        peer: Any = transport.get_extra_info("peername")
        address = str(peer[0]) if peer else ""
        network = network_of(address)
        neighbours = self.by_holder.get(network, {})
        # A proxy has the connections of many people.
        if len(neighbours) >= self._most_per_address and address not in self._trusted:
            self._close(next(iter(neighbours)))
        elif len(self.unauthenticated) >= self._most_unauthenticated:
            self._close(next(iter(self.unauthenticated)))
        elif len(self.all) >= self._most:
            self._close(_least_needed(max(self.by_holder.values(), key=len)))
        connection = ClientConnection(transport=transport, holder=network, since=_now(), taken_at=_now())
        self.all.add(connection)
        self.unauthenticated[connection] = None
        self.by_holder.setdefault(network, {})[connection] = None
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._watch())
        return connection

    def mark_authenticated(self, connection: ClientConnection, token_id: str, *, is_socket: bool) -> None:
        """Take a connection off the cap for unauthenticated ones, and count it for a token.

        Raises TooManySockets, or TooManyConnections if all connections of the token are busy.
        """
        if connection not in self.all:
            return  # closed while its token was looked up
        held = self.by_holder.get(token_id, {})
        alike = [each for each in held if each is not connection and each.is_socket == is_socket]
        if is_socket and len(alike) >= self._most_sockets_per_token:
            raise TooManySockets(self._most_sockets_per_token)
        if not is_socket and len(alike) >= self._most_per_token:
            spare = _least_needed(alike)
            if not spare.is_idle:
                raise TooManyConnections(self._most_per_token)
            self._close(spare)
        self._release(connection)
        connection.holder, connection.is_socket = token_id, is_socket
        self.by_holder.setdefault(token_id, {})[connection] = None

    @contextmanager
    def waiting(self, connection: ClientConnection) -> Generator[None]:
        """Count a wait for the token of a connection inside the block. Raises TooManyWaits."""
        if sum(each.is_waiting for each in self.by_holder.get(connection.holder, ())) >= self._most_waits_per_token:
            raise TooManyWaits(self._most_waits_per_token)
        connection.is_waiting = True
        try:
            yield
        finally:
            connection.is_waiting = False

    def forget(self, connection: ClientConnection) -> None:
        if connection in self.all:
            self._release(connection)
            self.all.discard(connection)

    def _release(self, connection: ClientConnection) -> None:
        self.unauthenticated.pop(connection, None)
        held = self.by_holder[connection.holder]
        del held[connection]
        if not held:
            del self.by_holder[connection.holder]

    def _close(self, connection: ClientConnection) -> None:
        self.forget(connection)
        connection.transport.abort()  # not close(), which waits for a client that reads nothing

    def hurry(self) -> None:
        """Close clients that read nothing after one second: the server stops, and would wait for them."""
        self._unread_seconds = _UNREAD_SECONDS_AT_STOP

    async def _watch(self) -> None:
        while self.all:
            await asyncio.sleep(_CHECK_EVERY)
            now = _now()
            for connection in list(self.all):
                if self._is_overdue(connection, now):
                    self._close(connection)
        self._task = None

    def _is_overdue(self, connection: ClientConnection, now: float) -> bool:
        unsent, taken = connection.transport.get_write_buffer_size(), count_taken(connection.transport)
        if unsent == 0 or taken > connection.taken:
            connection.taken_at = now
        connection.taken = taken
        if now - connection.taken_at > (self._unread_seconds or UNREAD_SECONDS):
            return True
        if connection.is_busy:
            return connection in self.unauthenticated and now - connection.since > _UNAUTHENTICATED_SECONDS
        return unsent == 0 and now - connection.since > self.seconds


def _least_needed(connections: Iterable[ClientConnection]) -> ClientConnection:
    """Return the connection whose end does the least harm: an idle one, then one that waits, then the oldest."""
    return min(connections, key=lambda each: (not each.is_idle, not (each.is_waiting or each.is_socket)))


class CountedHttp(H11Protocol):
    """uvicorn's HTTP protocol, which registers connections; a request's is in the state of its scope."""

    def __init__(self, *arguments: Any, connections: Connections, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._counted = connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        # The state becomes that of each request, and of the WebSocket that this connection may become.
        self.app_state = {**self.app_state, "connections": self._counted, "connection": self._counted.add(transport)}

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        forget(self.app_state)


def count_taken(transport: asyncio.Transport) -> int:
    """Return a number that grows when the client reads.

    On Linux, the bytes that its system has acknowledged. Elsewhere, the negative size of our buffer: new writes hide
    what was read, until the buffer is full and nothing more is written.
    """
    connection = transport.get_extra_info("socket")
    if not hasattr(socket, "TCP_INFO") or connection.fileno() < 0:
        return -transport.get_write_buffer_size()
    # struct tcp_info of linux/tcp.h, since Linux 4.1
    information = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    return struct.unpack_from("=Q", information, _BYTES_ACKED_AT)[0]


def count_untaken(transport: asyncio.Transport) -> int:
    """Return how many bytes the client has not read yet, in our buffer and the system's."""
    ours, connection = transport.get_write_buffer_size(), transport.get_extra_info("socket")
    if not hasattr(socket, "TCP_INFO") or connection.fileno() < 0:
        return ours
    return ours + struct.unpack("=i", fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)))[0]


def abort(state: dict[str, Any]) -> None:
    """Close the connection of a request without waiting for what its client has not read."""
    if "connection" in state:
        cast("ClientConnection", state["connection"]).transport.abort()


def mark_authenticated(state: dict[str, Any], token_id: str, *, is_socket: bool) -> None:
    """Count the connection of a request for a token; `state` is that of its scope."""
    if "connection" in state:
        connections = cast("Connections", state["connections"])
        connections.mark_authenticated(state["connection"], token_id, is_socket=is_socket)


def waiting(state: dict[str, Any], seconds: float) -> AbstractContextManager[None]:
    """Count a request that waits for something, up to some seconds, inside the block; not if these are 0."""
    if not seconds or "connection" not in state:
        return nullcontext()
    return cast("Connections", state["connections"]).waiting(state["connection"])


def forget(state: dict[str, Any]) -> None:
    """Remove a connection that was lost."""
    if "connection" in state:
        cast("Connections", state["connections"]).forget(state["connection"])


class TimedRequests:
    """ASGI middleware that notes when a connection is busy, and answers slow bodies with 408."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = cast("dict[str, Any]", scope.get("state") or {})
        connection: ClientConnection | None = state.get("connection")
        if connection is None:
            await self._app(scope, receive, send)
            return
        connection.is_busy, connection.since = True, _now()
        if scope["type"] == "http":
            receive = paced(receive, state["connections"].seconds)
        try:
            await self._app(scope, receive, send)
        finally:
            connection.is_busy, connection.since = False, _now()


def paced(receive: Receive, seconds: float) -> Receive:
    """Refuse a body that pauses for some seconds, or arrives more slowly than MIN_RATE."""
    begun: float | None = None
    received, is_whole = 0, False

    async def receive_in_time() -> Message:
        nonlocal begun, received, is_whole
        if is_whole:
            return await receive()  # waits for the client to disconnect
        now = _now()
        begun = now if begun is None else begun
        try:
            async with asyncio.timeout_at(min(now, begun + received / MIN_RATE) + seconds):
                message = await receive()
        except TimeoutError:
            raise BodyTooSlow from None
        received += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        return message

    return receive_in_time


def _now() -> float:
    return asyncio.get_running_loop().time()


def raw_send(connection: HTTPConnection) -> Send:
    """Return the server's own send function of a socket, without the layers in between."""
    return connection.state.send
