"""A line to PostgreSQL that can be cut, for tests of lost answers and outages."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit, urlunsplit


class Line:
    """A line to the server that can be cut between a question and its answer."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self._cut_at: bytes | None = None
        self._lose_at: bytes | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._is_down = False
        self.cuts = 0

    @contextlib.asynccontextmanager
    async def laid(self) -> AsyncIterator[str]:
        """Have the line for the length of a block, under an address of its own."""
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        user = self._url.netloc.rpartition("@")[0]
        yield urlunsplit(self._url._replace(netloc=f"{user}@127.0.0.1:{port}", query="sslmode=disable"))
        server.close()

    def cut_at(self, text: bytes) -> None:
        """Let the next question with this text through, and nothing after it."""
        self._cut_at = text

    def lose_at(self, text: bytes) -> None:
        """Close the connection instead of letting the next question with this text through."""
        self._lose_at = text

    def go_down(self) -> None:
        """Close every connection, and refuse new ones."""
        self._is_down = True
        for writer in list(self._open):
            writer.close()

    def come_back(self) -> None:
        self._is_down = False

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_down:
            writer.close()
            return
        self._open.add(writer)
        folder = parse_qs(self._url.query).get("host", [None])[0]
        if folder is not None:
            to_server = await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.{self._url.port or 5432}")
        else:
            to_server = await asyncio.open_connection(self._url.hostname, self._url.port or 5432)
        is_cut = asyncio.Event()
        pumps = [
            asyncio.create_task(self._ask(reader, to_server[1], is_cut)),
            asyncio.create_task(self._answer(to_server[0], writer, is_cut)),
        ]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        self._open.discard(writer)
        for end in (writer, to_server[1]):
            end.close()
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_cut: asyncio.Event) -> None:
        while data := await reader.read(65536):
            if self._lose_at is not None and self._lose_at in data:
                self._lose_at = None
                self.cuts += 1
                return
            if self._cut_at is not None and self._cut_at in data:
                self._cut_at = None
                is_cut.set()
            writer.write(data)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_cut: asyncio.Event) -> None:
        while data := await reader.read(65536):
            if is_cut.is_set():
                self.cuts += 1
                return
            writer.write(data)
