"""A connection to PostgreSQL that hangs at a COMMIT: nothing gets through any more, and neither side is closed."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Literal
from urllib.parse import parse_qs, urlsplit

Lost = Literal["commit", "answer"]


class SilentLine:
    """A TCP proxy in front of a server. It forwards everything until it has seen a mark and then a COMMIT."""

    def __init__(self, url: str, mark: bytes, lost: Lost, *, takes_all: bool) -> None:
        self._there = urlsplit(url)
        self._mark = mark
        self._lost = lost
        self._takes_all = takes_all  # every other connection hangs too, also new ones
        self._is_done = False
        self.fell_silent = threading.Event()
        self.url = ""

    @contextmanager
    def running(self) -> Iterator["SilentLine"]:
        """Run it in a thread of its own, for the length of a block."""
        loop = asyncio.new_event_loop()
        stopping = asyncio.Event()
        is_up = threading.Event()

        async def serve() -> None:
            async with self._served():
                is_up.set()
                await stopping.wait()
            # A connection that was accepted just now gets its task while the others are cancelled.
            while left := asyncio.all_tasks() - {asyncio.current_task()}:
                for task in left:
                    task.cancel()
                await asyncio.wait(left)
                await asyncio.sleep(0)  # transports are closed by a callback

        thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
        thread.start()
        try:
            assert is_up.wait(10)
            yield self
        finally:
            loop.call_soon_threadsafe(stopping.set)
            thread.join()
            loop.close()

    @asynccontextmanager
    async def _served(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        self.url = self._there._replace(netloc=f"postgres@127.0.0.1:{port}", query="").geturl()
        try:
            yield
        finally:
            server.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        folder = parse_qs(self._there.query).get("host")
        if folder:
            return await asyncio.open_unix_connection(f"{folder[0]}/.s.PGSQL.{self._there.port or 5432}")
        return await asyncio.open_connection(self._there.hostname, self._there.port or 5432)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection()
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(contextlib.suppress(asyncio.CancelledError))  # asyncio logs a handler that ends so
            stack.callback(writer.close)
            there, here = await self._connect()
            stack.callback(here.close)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass_on(reader, here, connection, is_from_client=True))
                both.create_task(self._pass_on(there, writer, connection, is_from_client=False))

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        connection: "_Connection",
        is_from_client: bool,
    ) -> None:
        with contextlib.suppress(OSError):
            while part := await reader.read(1 << 20):
                if is_from_client and not self._is_done:
                    self._look(part, connection)
                is_silent = connection.is_silent or (self._is_done and self._takes_all)
                if is_silent and not (is_from_client and connection.lets_one_through):
                    continue
                connection.lets_one_through = False
                writer.write(part)
                await writer.drain()
            if not connection.is_silent:
                writer.close()

    def _look(self, part: bytes, connection: "_Connection") -> None:
        connection.has_mark |= self._mark in part
        if connection.has_mark and b"COMMIT" in part:
            self._is_done = connection.is_silent = True
            connection.lets_one_through = self._lost == "answer"
            self.fell_silent.set()


class _Connection:
    has_mark = False
    is_silent = False
    lets_one_through = False
