"""A small server that plays a monitoring service in the form of healthchecks.io."""

import asyncio
from dataclasses import dataclass
from typing import Self
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping:
    """One request that came."""

    path: str
    rid: str | None
    body: str


class Healthchecks:
    """Records pings, and answers each with a status; while it is silent, with nothing."""

    def __init__(self) -> None:
        self.status = 200
        self.location: str | None = None
        self.is_silent = False
        self.pings: list[Ping] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    def url(self, check: str = "secret-check") -> str:
        return f"http://127.0.0.1:{self.port}/ping/{check}"

    def take(self) -> list[tuple[str, str]]:
        """Return the end of the path and the body of each ping since the last call."""
        taken, self.pings = self.pings, []
        return [(ping.path.removeprefix("/ping/"), ping.body) for ping in taken]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            method, target, _ = head.split(" ", 2)
            assert method == "POST"
            length = int(head.lower().partition("content-length:")[2].partition("\r\n")[0])
            parts = urlsplit(target)
            rid = parse_qs(parts.query).get("rid", [None])[0]
            body = (await reader.readexactly(length)).decode()
            self.pings.append(Ping(path=parts.path, rid=rid, body=body))
            if self.is_silent:
                await reader.read()  # until the client gives up
                return
            location = f"location: {self.location}\r\n" if self.location else ""
            writer.write(
                f"HTTP/1.1 {self.status} x\r\n{location}content-length: 0\r\nconnection: close\r\n\r\n".encode()
            )
            await writer.drain()
        finally:
            writer.close()
