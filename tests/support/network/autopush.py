"""The push service of a Firefox: it takes messages over HTTPS and hands them to the browser over a WebSocket.

Firefox's own service speaks the same protocol; the test sets its address with the preference `dom.push.serverURL`.
"""

import json
import uuid
from typing import Any, Self

from websockets.asyncio.server import Server, ServerConnection, serve

from network.push_service import Pushed, PushService, to_base64url


class Autopush(PushService):
    """A push service with one browser behind it."""

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self._browser: ServerConnection | None = None
        self._sockets: Server = await serve(self._talk, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *failure: object) -> None:
        self._sockets.close()
        await super().__aexit__(*failure)

    @property
    def address(self) -> str:
        """The address for the browser."""
        return f"ws://127.0.0.1:{self._sockets.sockets[0].getsockname()[1]}/"

    async def deliver(self, message: Pushed) -> None:
        """Hand a message to the browser."""
        assert self._browser is not None, "no browser is connected"
        frame = {
            "messageType": "notification",
            "channelID": message.path.rpartition("secret-")[2],
            "version": str(uuid.uuid4()),
            "data": to_base64url(message.body),
            "headers": {"encoding": message.headers["content-encoding"]},
        }
        await self._browser.send(json.dumps(frame))

    async def pass_on(self, seconds: float = 30.0) -> None:
        """Hand the next message that comes to the browser."""
        await self.deliver(await self.next(seconds))

    async def _talk(self, socket: ServerConnection) -> None:
        self._browser = socket
        async for text in socket:
            answer = self._answer(json.loads(text))
            if answer is not None:
                await socket.send(json.dumps(answer))

    def _answer(self, said: dict[str, Any]) -> dict[str, Any] | None:
        kind = said.get("messageType")
        if kind == "hello":
            return {"messageType": "hello", "uaid": uuid.uuid4().hex, "status": 200, "use_webpush": True}
        if kind == "register":
            channel = said["channelID"]
            return {
                "messageType": "register",
                "channelID": channel,
                "status": 200,
                "pushEndpoint": self.endpoint(channel),
            }
        if kind == "unregister":
            return {"messageType": "unregister", "channelID": said["channelID"], "status": 200}
        return {} if not said else None  # a ping is an empty object
