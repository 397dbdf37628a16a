"""A TCP proxy that is as slow as a bad mobile connection: everything comes late, and a few bytes at a time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

PIECE = 64  # bytes
PAUSE = 0.01  # seconds before each piece


@asynccontextmanager
async def slow_line(port: int) -> AsyncIterator[int]:
    """Forward everything unchanged, in both directions, to a port of this machine."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, here = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_drip(reader, here), _drip(there, writer))

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def _drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while part := await reader.read(PIECE):
            await asyncio.sleep(PAUSE)
            writer.write(part)
            await writer.drain()
    except OSError:
        pass  # one of the two hung up
    finally:
        writer.close()
