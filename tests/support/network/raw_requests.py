"""Requests to a server that no client library sends: refused sockets, raw bytes."""

import asyncio
import json
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus


class Addressed(Protocol):
    """A server with an address."""

    address: str


def code_of(answer: httpx.Response) -> tuple[int, str | None]:
    """Return the status and, if it was refused, the code."""
    return answer.status_code, answer.json()["error"]["code"] if answer.is_error else None


async def open_socket(server: Addressed, path: str, headers: dict[str, str] | None = None, **how: Any) -> Any:
    """Open a socket; return how it was refused or closed at once, or the type of the first frame."""
    address = server.address.replace("http://", "ws://") + path
    try:
        async with connect(address, additional_headers=headers, proxy=None, close_timeout=1, **how) as socket:
            return json.loads(await socket.recv())["type"]
    except InvalidStatus as refused:
        return refused.response.status_code, json.loads(refused.response.body)["error"]["code"]
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else 1006


async def send_raw(server: Addressed, *pieces: bytes, seconds: float = 10) -> tuple[int, str | None]:
    """Write bytes to a connection of its own, and return the status and code of the first answer."""
    parts = urlsplit(server.address)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        async with asyncio.timeout(seconds):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.read(65536)
    finally:
        writer.close()
    try:
        code = json.loads(body)["error"]["code"]
    except (ValueError, KeyError, TypeError):
        code = None
    return int(head.split()[1]), code
