"""Our end of a WebSocket: uvicorn's, which also takes messages that already have the form they have on the wire.

What a session says goes to everyone who watches it. So each message is put into that form once, and those of one
moment go out together: one write for each client instead of one for each client and message.
"""

from typing import Any

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from wakeful.server.connections import forget

LARGEST_FRAME = 72 * 1024 * 1024  # of a message with its images
LARGEST_OTHER_FRAME = 64 * 1024  # from those who may send no message


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
