"""A receiver of outgoing webhooks: keeps each request with its headers and the bytes of its body."""

import asyncio
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Taken:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes


class WebhookReceiver:
    """Answers every request with a status; without a server it cannot be reached."""

    def __init__(self) -> None:
        self.status = 204
        self.location: str | None = None
        self.retry_after: int | None = None
        self.is_silent = False
        self.taken: list[Taken] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    def url(self, path: str = "secret-path") -> str:
        return f"http://127.0.0.1:{self.port}/{path}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            body = await reader.readexactly(int(headers["content-length"]))
            self.taken.append(Taken(first.split(" ")[1], headers, body))
            if self.is_silent:
                await reader.read()  # until the sender gives up
                return
            more = f"location: {self.location}\r\n" if self.location else ""
            more += f"retry-after: {self.retry_after}\r\n" if self.retry_after else ""
            writer.write(f"HTTP/1.1 {self.status} x\r\n{more}content-length: 0\r\nconnection: close\r\n\r\n".encode())
            await writer.drain()
        finally:
            writer.close()
