"""Latency of other requests while one client sends bodies of 70 MB, and the memory the server keeps afterwards.

Writes bench/out/bodies.json and says which of the targets are met.
"""

import asyncio
import base64
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx

OUT = Path(__file__).parent / "out" / "bodies.json"
TOKEN = "a-token-for-this-bench"
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
MB = 1024 * 1024
ROUNDS = 3


@contextmanager
def started(folder: str) -> Generator[tuple[int, str]]:
    """Start a server and yield its process id and address."""
    environment = os.environ | {
        "WAKEFUL_DATA_DIR": f"{folder}/data",
        "WAKEFUL_CONFIG_DIR": f"{folder}/config",
        "WAKEFUL_TOKEN": TOKEN,
    }
    command = [Path(sys.executable).parent / "wakeful", "serve", "--port", "0"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        address = re.search(r"http://\S+", process.stdout.readline())
        assert address is not None
        yield process.pid, address[0]
    finally:
        process.terminate()
        process.communicate()


def make_body(kind: str) -> bytes:
    if kind == "lists":
        return b'{"content": [' + b"[]," * (23 * MB) + b"[]]}"
    if kind == "text":
        return b'{"content": "' + b'\\"' * (35 * MB) + b'"}'
    picture = b'"' + base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(5 * MB - 8)) + b'"'
    return b'{"content": "Hi", "images": [' + b",".join([picture] * 10) + b"]}"


def send(address: str, kind: str) -> None:
    """Send bodies from a separate process, so that the cost of making them is not measured."""
    body = make_body(kind)
    with httpx.Client(base_url=address, headers=HEADERS, timeout=120) as client:
        for _ in range(ROUNDS):
            session = client.post("/sessions", json={}).json()["id"]
            client.post(f"/sessions/{session}/messages", content=body)


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def measure(kind: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder, started(folder) as (pid, address):
        before = resident_mb(pid)
        sender = multiprocessing.get_context("spawn").Process(target=send, args=(address, kind))
        sender.start()
        waits: list[float] = []
        async with httpx.AsyncClient(base_url=address, timeout=120) as client:
            while sender.is_alive():
                asked = time.perf_counter()
                await client.get("/healthz")
                waits.append((time.perf_counter() - asked) * 1000)
                await asyncio.sleep(0.005)
        await asyncio.sleep(8)
        return {
            "others_most_ms": max(waits),
            "kept_mb": resident_mb(pid) - before,
        }


async def main() -> None:
    figures = {kind: await measure(kind) for kind in ("lists", "text", "pictures")}
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))
    for kind, figure in figures.items():
        for name, limit in (("others_most_ms", 1_000.0), ("kept_mb", 120.0)):
            verdict = "met   " if figure[name] <= limit else "MISSED"
            print(f"{verdict} {kind}, {name}: {figure[name]:.1f} (at most {limit:g})")


if __name__ == "__main__":
    asyncio.run(main())
