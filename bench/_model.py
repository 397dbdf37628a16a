"""CPU per streamed model delta: our chat client compared with bare httpx2 + orjson; the provider is another process.

Measured with deltas as fast as the provider can write them, and with deltas a millisecond apart, where each is a
packet of its own and most of the cost, for both, is the wake-up.
"""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import orjson
from pydantic_ai.messages import ModelRequest, PartDeltaEvent, PartStartEvent
from pydantic_ai.models import ModelRequestParameters

from wakeful.core.clock import SystemClock
from wakeful.models.endpoint import Endpoint
from wakeful.models.openai_chat import OpenAIChat

SERVER = Path(__file__).parent.parent / "tests/support/openai_server.py"
DELTAS = 3000
ROUNDS = 3
APART = 0.001  # seconds
LIMIT = 60.0  # microseconds


@asynccontextmanager
async def provider() -> AsyncGenerator[str]:
    """Start the scripted provider in a process of its own and yield its address."""
    process = await asyncio.create_subprocess_exec(sys.executable, SERVER, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.terminate()
        await process.communicate()


async def read_with_ours(base_url: str, question: str) -> tuple[int, int]:
    """Return how many characters and events came through our client."""
    endpoint = Endpoint(base_url)
    model = OpenAIChat("any", endpoint, SystemClock())
    characters = events = 0
    async with model.request_stream(
        [ModelRequest.user_text_prompt(question)], None, ModelRequestParameters()
    ) as stream:
        async for event in stream:
            if isinstance(event, PartStartEvent):
                characters += len(event.part.content)  # pyright: ignore[reportAttributeAccessIssue]  (it is text)
                events += 1
            elif isinstance(event, PartDeltaEvent):
                characters += len(event.delta.content_delta)  # pyright: ignore[reportAttributeAccessIssue, reportArgumentType]
                events += 1
    await endpoint.aclose()
    return characters, events


async def read_bare(base_url: str, question: str) -> tuple[int, int]:
    """Return the same with nothing but an HTTP client and a JSON parser, an event for every delta."""
    body = {"model": "any", "stream": True, "messages": [{"role": "user", "content": question}]}
    characters = events = 0
    rest = b""
    async with (
        httpx2.AsyncClient(timeout=None) as client,
        client.stream("POST", f"{base_url}/chat/completions", json=body) as response,
    ):
        async for chunk in response.aiter_raw():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line.startswith(b"data: {"):
                    choices = orjson.loads(line[6:])["choices"]
                    text = choices and choices[0]["delta"].get("content")
                    if text:
                        characters += len(text)
                        events += 1
    return characters, events


Reader = Callable[[str, str], Awaitable[tuple[int, int]]]


async def cpu_per_delta(read: Reader, base_url: str, deltas: int, apart: float) -> tuple[float, int]:
    """Return the microseconds of CPU per delta in this process, and the number of events."""
    await read(base_url, "stream 50 0")  # imports, caches and the TLS context are not the stream's
    began = time.process_time()
    characters, events = await read(base_url, f"stream {deltas} {apart}")
    spent = time.process_time() - began
    assert characters == deltas * len("word "), f"{characters} characters of {deltas} deltas"
    return spent / deltas * 1e6, events


async def measure(deltas: int = DELTAS, rounds: int = ROUNDS) -> dict[str, Any]:
    """Measure both in the same run; microseconds of CPU per delta, the best round of each."""
    async with provider() as base_url:
        bare = [(await cpu_per_delta(read_bare, base_url, deltas, 0))[0] for _ in range(rounds)]
        ours = [(await cpu_per_delta(read_with_ours, base_url, deltas, 0))[0] for _ in range(rounds)]
        paced_bare, _ = await cpu_per_delta(read_bare, base_url, deltas, APART)
        paced_ours, events = await cpu_per_delta(read_with_ours, base_url, deltas, APART)
    return {
        "deltas": deltas,
        "bare_us_per_delta": round(min(bare), 1),
        "ours_us_per_delta": round(min(ours), 1),
        "limit_us": LIMIT,
        "is_within_limit": min(ours) <= LIMIT,
        "paced_bare_us_per_delta": round(paced_bare, 1),
        "paced_ours_us_per_delta": round(paced_ours, 1),
        "paced_events": events,  # after merging
    }


if __name__ == "__main__":
    print(asyncio.run(measure()))
