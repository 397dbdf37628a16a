"""uvicorn's WebSocket protocol, extended to send messages that are already encoded for the wire.

A frame of a session goes to all its subscribers. So it is encoded once, and frames that come together are sent with one
write per client.
"""

from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from wakeful.http.connections import count_taken, count_untaken, forget

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
