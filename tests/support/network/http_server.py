"""A small HTTP server that records what it receives, as the target of notification channels."""

import asyncio
import json
from typing import Any, Self


class HttpServer:
    """Answers every request with a status, or not at all, and keeps the JSON bodies."""

    def __init__(self) -> None:
        self.status = 200
        self.location: str | None = None
        self.is_silent = False
        self.received: list[dict[str, Any]] = []
        self.has_more = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    def url(self, path: str = "secret-path") -> str:
        return f"json://user:secret-password@127.0.0.1:{self.port}/{path}"

    async def next(self, seconds: float = 30.0) -> dict[str, Any]:
        """Return the next message that came, or comes."""
        async with asyncio.timeout(seconds):
            while not self.received:
                self.has_more.clear()
                await self.has_more.wait()
        return self.received.pop(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length:")[2].partition("\r\n")[0])
            self.received.append(json.loads(await reader.readexactly(length)))
            self.has_more.set()
            if self.is_silent:
                await reader.read()  # until the client gives up
                return
            location = f"location: {self.location}\r\n" if self.location else ""
            answer = f"HTTP/1.1 {self.status} x\r\n{location}content-length: 0\r\nconnection: close\r\n\r\n"
            writer.write(answer.encode())
            await writer.drain()
        finally:
            writer.close()
