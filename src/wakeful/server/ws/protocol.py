"""Our end of a WebSocket: uvicorn's, which also takes messages that already have the form they have on the wire.

What a session says goes to everyone who watches it. So each message is put into that form once, and those of one
moment go out together: one write for each client instead of one for each client and message.
"""

from typing import Any

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from wakeful.server.limits.connections import count_taken, count_untaken, forget

LARGEST_FRAME = 72 * 1024 * 1024  # of a message with its images
LARGEST_OTHER_FRAME = 64 * 1024  # from those who may send no message
UNREAD = 1013
_CLOSE_SECONDS = 10.0  # for a client that reads nothing to read the rest and the close frame, if it still comes back


class Wire(WebSocketsSansIOProtocol):
    """A connection that takes two messages more than ASGI has.

    The bytes of `{"type": "websocket.send", "wire": bytes}` are written as they are. `{"type": "websocket.limit",
    "bytes": int}` sets the size up to which messages of the client are taken from now on.
    """

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        forget(self.app_state)

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        # At the level debug it would log each header and each message: tokens, tickets, and what people write.
        self.conn.debug = False
        self._ping_at = 0  # how many bytes the client has taken when it has the last ping
        self._taken = 0  # when that was last looked at

    def handle_ping(self) -> None:
        """Answer a ping, but not one of a client that reads nothing: each answer would stay in our memory."""
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
        # Its answer is waited for: to close now would reset the connection at its next word, and lose what it has not
        # read yet.
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(_CLOSE_SECONDS, self.transport.abort)

    async def send(self, message: ASGISendEvent) -> None:
        if message["type"] == "websocket.limit":  # pyright: ignore[reportUnnecessaryComparison]  (a type of our own)
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
