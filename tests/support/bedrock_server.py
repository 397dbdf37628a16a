"""A scripted provider that speaks Bedrock's Converse API, for requests that are special to it."""

import json
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from openai_server import Exchange, OpenAIServer

_TEXT = 7  # the type of a header's value


async def answer(exchange: Exchange) -> None:
    """Answer hello, in the provider's own events."""
    events: list[tuple[str, dict[str, Any]]] = [
        ("messageStart", {"role": "assistant"}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Hello."}}),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("messageStop", {"stopReason": "end_turn"}),
        (
            "metadata",
            {"usage": {"inputTokens": 5, "outputTokens": 1, "totalTokens": 6}, "metrics": {"latencyMs": 1}},
        ),
    ]
    await exchange.begin(headers={"Content-Type": "application/vnd.amazon.eventstream"})
    for kind, payload in events:
        await exchange.send(_framed(kind, json.dumps(payload).encode()))
    await exchange.end()


def _framed(kind: str, payload: bytes) -> bytes:
    """Write an event as AWS frames it: lengths, headers, payload, and a checksum of each part."""
    fields = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", _TEXT, len(value)) + value.encode()
        for name, value in fields.items()
    )
    lengths = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    message = lengths + struct.pack("!I", zlib.crc32(lengths)) + headers + payload
    return message + struct.pack("!I", zlib.crc32(message))


@asynccontextmanager
async def bedrock() -> AsyncIterator[OpenAIServer]:
    """Start one that always answers hello and records its requests."""
    async with OpenAIServer(always=answer) as provider:
        yield provider
