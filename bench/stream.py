"""Cost of streaming to many clients, compared with a bare broadcast of the same bytes in the same run.

Writes bench/out/stream.json and says which of the targets are met.
"""

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx
import websockets
from websockets.asyncio.client import ClientConnection

import _model
from _stream_server import TOKEN

OUT = Path(__file__).parent / "out" / "stream.json"
SERVER = Path(__file__).parent / "_stream_server.py"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
CLIENTS, DELTAS, APART, BURST = 50, 5_000, 0.002, 5
FIRST_FRAMES = 200
STUCK = 20
IDLE = 1_000
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Process:
    """A server to measure from outside."""

    pid: int
    port: int

    @property
    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    @property
    def rss_mb(self) -> float:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * resource.getpagesize() / 1e6

    def connect(self, path: str) -> Awaitable[ClientConnection]:
        return websockets.connect(
            f"ws://127.0.0.1:{self.port}{path}", additional_headers=HEADERS, compression=None, max_size=None
        )


@asynccontextmanager
async def started(*arguments: str) -> AsyncGenerator[Process]:
    process = await asyncio.create_subprocess_exec(sys.executable, SERVER, *arguments, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield Process(process.pid, int(await process.stdout.readline()))
    finally:
        process.kill()
        await process.communicate()


class Listener:
    """A client that records every frame and its latency."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.frames: list[tuple[float, str]] = []
        self.late_ms: list[float] = []

    async def until_end(self) -> None:
        while True:
            text = await self.socket.recv()
            at = time.monotonic()
            assert isinstance(text, str)
            self.frames.append((at, text))
            if text.startswith('{"type":"stream_delta"'):
                said = json.loads(text)["delta"].split()
                self.late_ms += [(at - float(each)) * 1000 for each in (said[0], said[-1])]
            elif text.startswith('{"type":"stream_end"'):
                return


async def new_session(process: Process) -> str:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{process.port}", headers=HEADERS) as client:
        return (await client.post("/sessions")).json()["id"]


async def talk(listeners: list[Listener], deltas: int, apart: float, burst: int = BURST) -> None:
    """Let one client send a message, and all receive the whole answer."""
    asked = json.dumps({"deltas": deltas, "apart": apart, "burst": burst})
    await listeners[0].socket.send(json.dumps({"type": "message", "content": asked}))
    await asyncio.gather(*[listener.until_end() for listener in listeners])


@asynccontextmanager
async def listening(process: Process, session_id: str, count: int) -> AsyncGenerator[list[Listener]]:
    async with AsyncExitStack() as stack:
        listeners: list[Listener] = []
        for _ in range(count):
            socket = await stack.enter_async_context(await process.connect(f"/ws/sessions/{session_id}"))
            await socket.recv()  # session_sync
            listeners.append(Listener(socket))
        yield listeners


async def measure_broadcast(process: Process) -> tuple[dict[str, float], list[tuple[float, list[str]]]]:
    """Return the server's CPU time per delivered frame, and the frames with their times, for the bare broadcast."""
    session_id = await new_session(process)
    async with listening(process, session_id, CLIENTS) as listeners:
        before = process.cpu_seconds
        await talk(listeners, DELTAS, APART)
        spent = process.cpu_seconds - before
    delivered = sum(len(listener.frames) for listener in listeners)
    return {
        "frames": len(listeners[0].frames),
        "cpu_us_per_frame": spent / delivered * 1e6,
        "late_p50_ms": quantiles(listeners[-1].late_ms, n=100)[49],
        "late_p99_ms": quantiles(listeners[-1].late_ms, n=100)[98],
    }, in_moments(listeners[0].frames)


def in_moments(frames: list[tuple[float, str]]) -> list[tuple[float, list[str]]]:
    """Group frames that arrived together, each group with the time since the one before."""
    moments: list[tuple[float, list[str]]] = []
    last = frames[0][0]
    for at, text in frames:
        if moments and at - last < 0.005:
            moments[-1][1].append(text)
        else:
            moments.append((at - last, [text]))
            last = at
    return moments


async def measure_bare(process: Process, moments: list[tuple[float, list[str]]]) -> float:
    async with AsyncExitStack() as stack:
        sockets = [await stack.enter_async_context(await process.connect("/")) for _ in range(CLIENTS)]
        source = await stack.enter_async_context(await process.connect("/source"))
        count = sum(len(texts) for _, texts in moments)

        async def hear(socket: ClientConnection) -> None:
            for _ in range(count):
                async with asyncio.timeout(60):  # a server that has given up must not be waited for
                    await socket.recv()

        before = process.cpu_seconds
        await source.send(json.dumps(moments))
        await asyncio.gather(*[hear(socket) for socket in sockets])
        return (process.cpu_seconds - before) / (count * CLIENTS) * 1e6


async def measure_first_frames(process: Process) -> float:
    session_id = await new_session(process)
    async with listening(process, session_id, 1) as [listener]:
        for _ in range(FIRST_FRAMES):
            listener.frames.clear()
            await talk([listener], 1, 0.0)
    return quantiles(listener.late_ms[::2], n=100)[98]


async def measure_gaps(process: Process) -> dict[str, float]:
    """Return the time between frames at a client while a model streams 40 deltas a second."""
    session_id = await new_session(process)
    async with listening(process, session_id, 1) as [listener]:
        await talk([listener], 400, 0.025, burst=1)
    times = [at for at, text in listener.frames if text.startswith('{"type":"stream_delta"')]
    gaps = [(later - sooner) * 1000 for sooner, later in pairwise(times)]
    return {"frames": len(times), "p90_ms": quantiles(gaps, n=10)[-1], "max_ms": max(gaps)}


async def measure_stuck(process: Process) -> dict[str, float]:
    """Return what clients that never read cost the server and other clients."""
    session_id = await new_session(process)
    async with listening(process, session_id, 5) as listeners:
        await talk(listeners, 2_500, APART)
        alone = quantiles([late for each in listeners for late in each.late_ms], n=100)[98]
        for listener in listeners:
            listener.late_ms.clear()
        before = process.rss_mb
        stuck = [await stuck_client(process, session_id) for _ in range(STUCK)]
        await talk(listeners, 2_500, APART)
        beside = quantiles([late for each in listeners for late in each.late_ms], n=100)[98]
        grown = process.rss_mb - before
        for writer in stuck:
            writer.close()
    return {"late_p99_ms_alone": alone, "late_p99_ms_beside_stuck": beside, "rss_mb_per_stuck": grown / STUCK}


async def stuck_client(process: Process, session_id: str) -> asyncio.StreamWriter:
    """Complete the WebSocket handshake, then never read again."""
    reader, writer = await asyncio.open_connection("127.0.0.1", process.port, limit=1024)
    writer.write(
        f"GET /ws/sessions/{session_id} HTTP/1.1\r\nHost: 127.0.0.1:{process.port}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        f"Authorization: Bearer {TOKEN}\r\n\r\n".encode()
    )
    await reader.readuntil(b"\r\n\r\n")
    writer.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue]
    return writer


async def measure_idle(process: Process) -> float:
    session_id = await new_session(process)
    before = process.rss_mb
    async with listening(process, session_id, IDLE):
        return process.rss_mb - before


async def measure_loop(folder: str) -> float:
    """Return the whole server's CPU per model delta of a run over the real loop."""
    async with _model.provider() as url, started("node", f"{folder}/loop", url) as process:
        session_id = await new_session(process)
        async with listening(process, session_id, 1) as [listener]:
            before = process.cpu_seconds
            question = f"stream {_model.DELTAS} 0"
            await listener.socket.send(json.dumps({"type": "message", "content": question}))
            while True:
                text = await listener.socket.recv()
                assert isinstance(text, str)
                if text.startswith(('{"type":"stream_end"', '{"type":"error"')):
                    assert "error" not in text[:20], text
                    break
            return (process.cpu_seconds - before) / _model.DELTAS * 1e6


async def main() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * IDLE)), hard))
    with tempfile.TemporaryDirectory() as folder:
        async with started("node", f"{folder}/node") as node, started("bare") as bare:
            broadcast, moments = await measure_broadcast(node)
            broadcast["bare_cpu_us_per_frame"] = await measure_bare(bare, moments)
            first = await measure_first_frames(node)
            gaps = await measure_gaps(node)
            stuck = await measure_stuck(node)
        async with started("node", f"{folder}/idle") as node:
            idle = await measure_idle(node)
        whole = await measure_loop(folder)
    wire = await _model.measure()
    figures: dict[str, Any] = {
        "broadcast": broadcast,
        "first_frame_p99_ms": first,
        "gaps": gaps,
        "stuck": stuck,
        "idle_sockets_mb": idle,
        "server_cpu_us_per_delta": whole,
        "wire": wire,
    }
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))
    ratio = broadcast["cpu_us_per_frame"] / broadcast["bare_cpu_us_per_frame"]
    slower = stuck["late_p99_ms_beside_stuck"] - stuck["late_p99_ms_alone"]
    for name, value, limit in (
        ("CPU per delivered frame / bare", ratio, 2.0),
        ("first frame p99, ms", first, 20.0),
        ("gap between frames at 40 deltas a second p90, ms", gaps["p90_ms"], 45.0),
        ("gap between frames at 40 deltas a second at most, ms", gaps["max_ms"], 90.0),
        ("stuck clients: others later by, ms", slower, 50.0),
        ("stuck clients: MB each", stuck["rss_mb_per_stuck"], 2.0),
        ("1,000 idle sockets, MB", idle, 60.0),
        ("own CPU per model delta, µs", wire["ours_us_per_delta"], 60.0),
    ):
        print(f"{'met   ' if value <= limit else 'MISSED'} {name}: {value:.2f} (at most {limit:g})")


if __name__ == "__main__":
    asyncio.run(main())
