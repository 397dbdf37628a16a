"""Latency of REST over one keep-alive connection, compared with a bare uvicorn in the same run.

Writes bench/out/rest.json and says which of the targets are met. 40 ms is the sign of Nagle's algorithm: the body waits
until the client acknowledges the headers.
"""

import asyncio
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import Any

import uvicorn

OUT = Path(__file__).parent / "out" / "rest.json"
TOKEN = "a-token-for-this-bench"
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
REQUESTS = 400
WARM_UP = 40
TARGET = 3.0  # ms, p50


@contextmanager
def started(command: Sequence[str | Path], environment: dict[str, str]) -> Generator[int]:
    """Start a server that prints its address, and yield its port."""
    process = subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        address = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
        assert address is not None
        yield int(address[1])
    finally:
        process.terminate()
        process.communicate()


def measure(connection: http.client.HTTPConnection, method: str, path: str, body: object = None) -> dict[str, float]:
    """Repeat a request and return its latencies in milliseconds."""
    content = None if body is None else json.dumps(body)
    took: list[float] = []
    for number in range(WARM_UP + REQUESTS):
        asked = time.perf_counter()
        connection.request(method, path, body=content, headers=HEADERS)
        answer = connection.getresponse()
        answer.read()
        assert answer.status < 300, answer.status
        if number >= WARM_UP:
            took.append((time.perf_counter() - asked) * 1000)
    cuts = quantiles(took, n=100)
    return {"p50_ms": cuts[49], "p99_ms": cuts[98]}


def measure_all(port: int) -> dict[str, dict[str, float]]:
    """Measure every request over one keep-alive connection of http.client."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    try:
        figures = {
            "GET /healthz": measure(connection, "GET", "/healthz"),
            "GET /agents": measure(connection, "GET", "/agents"),
            "POST /sessions": measure(connection, "POST", "/sessions", {"title": "Measured"}),
        }
    finally:
        connection.close()
    return figures


def measure_disk(folder: str) -> dict[str, float]:
    """Return how long an fsync of one page takes; every write waits for one."""
    took: list[float] = []
    with (Path(folder) / "page").open("wb", buffering=0) as file:
        for _ in range(REQUESTS):
            began = time.perf_counter()
            file.write(bytes(4096))
            os.fsync(file.fileno())
            took.append((time.perf_counter() - began) * 1000)
    cuts = quantiles(took, n=100)
    return {"p50_ms": cuts[49], "p99_ms": cuts[98]}


async def serve_bare() -> None:
    """Answer every request with the same JSON, with uvicorn and nothing else."""
    content = b'{"ok":true}'

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        length = str(len(content)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": content})

    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(app, http="h11", lifespan="off", log_config=None, access_log=False)
    await uvicorn.Server(config).serve(sockets=[listener])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "WAKEFUL_DATA_DIR": f"{folder}/data",
            "WAKEFUL_CONFIG_DIR": f"{folder}/config",
            "WAKEFUL_TOKEN": TOKEN,
        }
        wakeful = Path(sys.executable).parent / "wakeful"
        with (
            started([wakeful, "serve", "--port", "0"], environment) as ours,
            started([sys.executable, __file__, "bare"], {}) as bare,
        ):
            figures = {"bare": measure_all(bare), "wakeful": measure_all(ours), "disk": {"fsync": measure_disk(folder)}}
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))
    for name, figure in figures["wakeful"].items():
        p50, raw = figure["p50_ms"], figures["bare"][name]["p50_ms"]
        verdict = "met   " if p50 <= TARGET else "MISSED"
        print(f"{verdict} {name}, p50 in ms: {p50:.2f} (at most {TARGET:g}; bare uvicorn {raw:.2f})")
    print(f"       fsync, p50 in ms: {figures['disk']['fsync']['p50_ms']:.2f}")


if __name__ == "__main__":
    if sys.argv[1:] == ["bare"]:
        asyncio.run(serve_bare())
    else:
        main()
