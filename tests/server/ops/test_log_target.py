"""The log of a real server: its start and stop, requests if asked for, and a pipe that nobody reads."""

import fcntl
import os
import re
import signal

import httpx
import pytest

from forked_process import Forked
from harness import eventually

TOKEN = "a-token-for-all-tests"
_PIPE_BYTES = 4096


@pytest.fixture
def pipe(tmp_path):
    """A pipe for standard error that holds a page; yields its path and the descriptor to read from."""
    path = tmp_path / "stderr"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    yield path, reader
    os.close(reader)


@pytest.fixture
def process(tmp_path, pipe):
    environment = {
        "WAKEFUL_DATA_DIR": str(tmp_path / "data"),
        "WAKEFUL_CONFIG_DIR": str(tmp_path / "config"),
        "WAKEFUL_TOKEN": TOKEN,
        "WAKEFUL_LOG_REQUESTS": "true",
        "PATH": os.environ["PATH"],
    }
    process = Forked(("serve", "--port", "0"), environment, pipe[0])
    yield process
    process.close()


def read(reader: int) -> str:
    try:
        return os.read(reader, 1_000_000).decode()
    except BlockingIOError:
        return ""


async def test_a_full_pipe_stops_no_run_and_no_stop(process, pipe):
    _, reader = pipe
    address, login = process.read_addresses()
    headers = {"Authorization": f"Bearer {TOKEN}"}
    text = ""

    async def has(words: str) -> bool:
        nonlocal text
        text += read(reader)
        return words in text

    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=20, verify=False) as client:
        await eventually(lambda: has("server ready"))
        assert "server starting version=" in text
        await client.get("/wakes/%0Aforged?ticket=hidden")
        await eventually(lambda: has("path=/wakes/%0Aforged"))
        assert re.search(r"request method=GET path=/wakes/%0Aforged status=\d+ seconds=[\d.]+ client=127.0.0.1", text)
        assert "hidden" not in text
        for _ in range(60):  # far more than the pipe holds; nobody reads it from here on
            assert (await client.get("/healthz")).status_code == 200
        session = (await client.post("/sessions", json={"title": "t"})).json()["id"]
        run = (await client.post(f"/sessions/{session}/messages", json={"content": "Hello"})).json()

        async def is_over() -> bool:
            found = (await client.get(f"/runs/{run['run_id']}")).json()
            return found["status"] == "success"

        await eventually(is_over)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert login
