"""Open sockets: uvicorn's protocol with encoded messages, heartbeats, and the end of sockets whose token is revoked.

A frame of a session goes to all its subscribers. So it is encoded once, and frames that come together are sent with one
write per client.
"""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from fastapi import WebSocket
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from wakeful.core.errors import StoreUnavailable
from wakeful.http.connections import abort, count_taken, count_untaken, forget
from wakeful.people.service import Accounts

log = logging.getLogger(__name__)

MAX_FRAME = 72 * 1024 * 1024  # of a message with its images
MAX_OTHER_FRAME = 64 * 1024  # from clients that may not send messages
UNREAD = 1013
WRITE_NOW = "write_now"  # in the state of a connection, and so missing under another server
CLOSE_SECONDS = 10.0  # for a client that read nothing to read the rest and the close frame


class Wire(WebSocketsSansIOProtocol):
    """A connection with two more messages than ASGI has.

    The bytes of `{"type": "websocket.send", "wire": bytes}` are written as they are. `{"type": "websocket.limit",
    "bytes": int}` sets the maximum size of messages from the client.
    """

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        forget(self.app_state)

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        # Otherwise it would log all headers and messages at the level debug, including tokens and tickets.
        self.conn.debug = False
        self._ping_at = 0  # how many bytes the client has read when it gets the last ping
        self._taken = 0  # at the last check

    def handle_ping(self) -> None:
        """Answer a ping, unless the client reads nothing: each answer would stay in our memory."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def send_keepalive_ping(self) -> None:
        super().send_keepalive_ping()
        self._taken = count_taken(self.transport)
        self._ping_at = self._taken + count_untaken(self.transport)

    def keepalive_timeout(self) -> None:
        """Close a client that did not answer a ping, unless it reads slowly and the ping has not reached it yet."""
        before, self._taken = self._taken, count_taken(self.transport)
        if before < self._taken < self._ping_at:
            self.pong_timer = self.loop.call_later(self.ping_timeout or 0.0, self.keepalive_timeout)
            return
        self.stop_keepalive()
        if self.close_sent or self.transport.is_closing():
            return
        reason = "This client read nothing for some time. Connect again with ?after=SEQ."
        self.queue.put_nowait({"type": "websocket.disconnect", "code": UNREAD, "reason": reason})
        self.conn.send_close(UNREAD, reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        # Wait for its close frame: closing now would reset the connection when it sends something, and it would lose
        # what it has not read yet.
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(CLOSE_SECONDS, self.transport.abort)

    async def run_asgi(self) -> None:
        self.scope.setdefault("state", {})[WRITE_NOW] = self.write_now
        await super().run_asgi()

    def write_now(self, wire: bytes) -> bool:
        """Write bytes as they are; False if the client has gone, or reads more slowly than it gets."""
        if self.disconnected or self.close_sent or not self.writable.is_set():
            return False
        self.transport.write(wire)
        return True

    async def send(self, message: Any) -> None:
        if message["type"] == "websocket.limit":
            self.conn.max_message_size = message["bytes"]
            return
        wire = message.get("wire")
        if wire is None:
            await super().send(message)
            return
        await self.writable.wait()
        if self.disconnected or self.close_sent:
            raise ClientDisconnected
        self.transport.write(wire)


# ── Heartbeats ────────────────────────────────────────────────────────────────────────────────────────────────────────


_CHECKS = 8  # per heartbeat


class Pulse:
    """The silence of one socket, counted in checks: reading the clock for each message would cost more."""

    __slots__ = ("_is_due", "_silent_checks", "_wake")

    def __init__(self, wake: asyncio.Event) -> None:
        self._wake = wake
        self._silent_checks = 0
        self._is_due = False

    def beat(self) -> None:
        """Start counting again: a frame was sent."""
        self._silent_checks = 0

    def pop_due(self) -> bool:
        """Return whether a heartbeat is due, and reset that."""
        is_due, self._is_due = self._is_due, False
        return is_due

    def check(self) -> None:
        """Wake the sender if the next check could be too late for a heartbeat."""
        self._silent_checks += 1
        if self._silent_checks >= _CHECKS - 1:
            self.beat()
            self._is_due = True
            self._wake.set()


class Heartbeats:
    """Heartbeats on silent sockets: one timer checks all of them several times per heartbeat."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._pulses: set[Pulse] = set()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def of(self, wake: asyncio.Event) -> Generator[Pulse]:
        """Make heartbeats due on a socket inside the block; `wake` wakes its sender."""
        pulse = Pulse(wake)
        self._pulses.add(pulse)
        if self._task is None:
            self._task = asyncio.create_task(self._keep_checking())
        try:
            yield pulse
        finally:
            self._pulses.discard(pulse)

    async def _keep_checking(self) -> None:
        while self._pulses:
            await asyncio.sleep(self._seconds / _CHECKS)
            for pulse in self._pulses:
                pulse.check()
        self._task = None


# ── Tokens of open sockets ────────────────────────────────────────────────────────────────────────────────────────────


TOKEN_ENDED = 4001
CHECK_EVERY = 20.0  # seconds; a revoked token's sockets are closed within 30
REVOKED_CLOSE_SECONDS = 5.0


class OpenSockets:
    """Closes the sockets of tokens that were revoked or have expired."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._open: dict[WebSocket, str] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        """Return how many sockets are open."""
        return len(self._open)

    @contextmanager
    def keep(self, token_id: str, websocket: WebSocket) -> Generator[None]:
        """Check the token of a socket inside the block."""
        self._open[websocket] = token_id
        if self._task is None:
            self._task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            del self._open[websocket]

    async def _watch(self) -> None:
        while self._open:
            await asyncio.sleep(CHECK_EVERY)
            if not self._open:
                break  # the server may have stopped meanwhile, and its store with it
            try:
                valid = await self._accounts.still_valid(set(self._open.values()))
            except StoreUnavailable:  # the store logs it
                continue
            except Exception:
                log.exception("check of open sockets failed")
                continue
            ended = [websocket for websocket, token_id in self._open.items() if token_id not in valid]
            await asyncio.gather(*[_close(websocket) for websocket in ended])
        self._task = None


async def _close(websocket: WebSocket) -> None:
    try:
        async with asyncio.timeout(REVOKED_CLOSE_SECONDS):  # a client that reads nothing must not hold up the others
            await websocket.close(TOKEN_ENDED, "The token of this socket is no longer valid.")
    except TimeoutError:
        abort(websocket.scope["state"])
    except RuntimeError:
        pass  # it is closing already
