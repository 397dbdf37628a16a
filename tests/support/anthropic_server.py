"""A scripted provider that speaks Anthropic's messages API, for requests that are special to it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from openai_server import Exchange, OpenAIServer


async def answer(exchange: Exchange) -> None:
    """Answer hello, in the provider's own events."""
    usage = {"input_tokens": 5, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    events = [
        {"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    await exchange.begin()
    for event in events:
        await exchange.send(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
    await exchange.end()


@asynccontextmanager
async def anthropic() -> AsyncIterator[OpenAIServer]:
    """Start one that always answers hello and records its requests."""
    async with OpenAIServer(always=answer) as provider:
        yield provider
