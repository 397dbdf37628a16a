"""The frames of a session over its WebSocket, across lost connections."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from wakeful.cli.connection import tls_context
from wakeful.cli.output import Failed
from wakeful.cli.server import Server

Frame = dict[str, Any]
_REVOKED, _GONE = 4001, 4004  # close codes
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0  # seconds before a new attempt
_FOR_GOOD = (400, 401, 403, 404)  # answers that another attempt does not change


class SessionStream:
    """Reads the frames of a session, each once. After a lost connection it continues behind the last one."""

    def __init__(self, server: Server, session_id: str, on_state: Callable[[str | None], None]) -> None:
        self._server = server
        self._session_id = session_id
        self._on_state = on_state  # called with what is wrong with the connection, or None
        self._last_seq: int | None = None

    async def frames(self) -> AsyncIterator[Frame]:
        """Yield frames until the session is deleted or the token is revoked; raises Failed then."""
        pause = _FIRST_PAUSE
        while True:
            problem = "the connection was lost"
            try:
                async with self._connect() as socket:
                    self._on_state(None)
                    async for frame in self._read(socket):
                        pause = _FIRST_PAUSE
                        yield frame
            except InvalidStatus as error:
                status = error.response.status_code
                if status in _FOR_GOOD:
                    raise Failed(f"The server refused the session's socket with status {status}.") from None
                problem = f"the server answered {status}"
            except (OSError, TimeoutError, WebSocketException) as error:
                problem = f"no connection ({type(error).__name__})"
            self._on_state(f"{problem}; connecting again")
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _connect(self) -> connect:
        after = "" if self._last_seq is None else f"?after={self._last_seq}"
        return connect(
            f"{self._server.address.replace('http', 'ws', 1)}/ws/sessions/{self._session_id}{after}",
            ssl=tls_context(self._server.target),
            additional_headers=self._server.headers,
            user_agent_header=None,
            proxy=None,
            compression=None,
            max_size=None,
            close_timeout=1,
        )

    async def _read(self, socket: ClientConnection) -> AsyncIterator[Frame]:
        try:
            async for text in socket:
                frame: Frame = json.loads(text)
                self._last_seq = frame.get("seq", self._last_seq)
                yield frame
        except ConnectionClosed:
            pass  # the code says why
        if socket.close_code == _GONE:
            raise Failed(f"The session {self._session_id} was deleted.")
        if socket.close_code == _REVOKED:
            raise Failed("The token has expired or was revoked.")
