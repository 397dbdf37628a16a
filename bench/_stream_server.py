"""A server in a process of its own, for bench/stream.py: our node with a run that only streams, or a bare broadcast."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import uvicorn

from wakeful.app.building import build
from wakeful.app.http import build_http, welcome
from wakeful.config.settings import Settings
from wakeful.core.events import RunEvent, StreamDelta, StreamEnd, StreamStart
from wakeful.core.types import Message, Run
from wakeful.runs.executor import BeforeCall, Stop
from wakeful.store.store import Tx
from wakeful.stream.wire import MAX_OTHER_FRAME, Wire

TOKEN = "bench-token"


class Talker:
    """Streams as many timestamps, and as far apart, as the last message asks for."""

    def __init__(self) -> None:
        self.store: Any = None

    async def execute(
        self, run: Run, _steps: Sequence[Message], _stop: Stop, _before_call: BeforeCall
    ) -> AsyncGenerator[RunEvent]:
        yield StreamStart()
        session_id = run.session_id

        async def last(tx: Tx) -> Message:
            return (await tx.sessions.messages(session_id or ""))[-1]

        asked = json.loads((await self.store.read(last)).content)
        at = now = time.monotonic()
        for number in range(1, asked["deltas"] + 1):
            yield StreamDelta(delta=f"{now:.6f} ")
            at += asked["apart"]
            if number % asked["burst"] == 0:  # as they come from a provider: a few in each packet
                await asyncio.sleep(max(0.0, at - now))
                now = time.monotonic()
        yield StreamEnd(
            content="",
            context_tokens=0,
            max_context_tokens=0,
            elapsed_seconds=0.0,
            tool_call_count=0,
            token_count=0,
            message_index=0,
        )


async def serve_node(folder: Path, model_url: str | None) -> None:
    """Serve a node; with a model's address, its runs use the real loop."""
    settings = Settings.model_validate(
        {
            "data_dir": folder / "data",
            "config_dir": folder / "config",
            "token": TOKEN,
            "sockets_per_token": 100_000,
            "model": "demo" if model_url is None else "openai-chat:bench",
            "model_base_url": model_url,
        }
    )
    talker = Talker()
    node = build(settings, executor=talker if model_url is None else None)
    talker.store = node.store
    async with node.running():
        await welcome(node)
        await _run(build_http(node), Wire)


async def serve_bare() -> None:
    """Send every frame that one client posts to all others, with uvicorn and nothing else."""
    sockets: set[Any] = set()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "websocket":
            return
        await receive()
        await send({"type": "websocket.accept"})
        if scope["path"] == "/source":
            while (message := await receive())["type"] == "websocket.receive":
                at = time.monotonic()
                for gap, texts in json.loads(message["text"]):
                    at += gap
                    await asyncio.sleep(max(0.0, at - time.monotonic()))
                    for text in texts:
                        for each in list(sockets):
                            await each({"type": "websocket.send", "text": text})
                await send({"type": "websocket.send", "text": "done"})
            return
        sockets.add(send)
        await receive()
        sockets.discard(send)

    await _run(app, "websockets-sansio", most=256 * 1024 * 1024)  # one frame has the whole recording


async def _run(app: Any, ws: Any, most: int = MAX_OTHER_FRAME) -> None:
    config = uvicorn.Config(
        app,
        port=0,
        ws=ws,
        ws_max_size=most,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
    )
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    print(server.servers[0].sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    if sys.argv[1] == "bare":
        asyncio.run(serve_bare())
    else:
        asyncio.run(serve_node(Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None))
