"""The log of a real server: its start and stop, requests if asked for, and a pipe that nobody reads."""

import contextlib
import fcntl
import os
import re
import signal
import socket
import subprocess
from collections import Counter

import httpx
import pytest

from forked_process import Forked
from harness import eventually
from terminal import WAKEFUL

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
def environment(tmp_path):
    return {
        "WAKEFUL_DATA_DIR": str(tmp_path / "data"),
        "WAKEFUL_CONFIG_DIR": str(tmp_path / "config"),
        "WAKEFUL_TOKEN": TOKEN,
        "WAKEFUL_FETCH_PRIVATE_HOSTS": "127.0.0.1",
        "PATH": os.environ["PATH"],
    }


@pytest.fixture
def process(environment, pipe):
    process = Forked(("serve", "--port", "0"), environment | {"WAKEFUL_LOG_REQUESTS": "true"}, pipe[0])
    yield process
    process.close()


@pytest.fixture
def logged(environment, tmp_path):
    """A server with the level `info`, whose log goes into a file."""
    process = Forked(("serve", "--port", "0"), environment, tmp_path / "log")
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


@pytest.mark.whole
async def test_the_log_of_a_day_has_each_event_once_and_nothing_else(logged, tmp_path):
    """A message, a wake, a database in a worker process, a channel that fails in another one, and a stop."""
    address, _ = logged.read_addresses()
    async with httpx.AsyncClient(
        base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=20, verify=False
    ) as client:
        [agent] = (await client.get("/agents")).json()["agents"]
        imported = await client.post(f"/agents/{agent['id']}/db/import", json={"table": "t", "text": "a\n1\n"})
        assert imported.is_success, imported.text
        made = await client.post("/channels", json={"name": "nobody", "url": "json://127.0.0.1:9/"})
        assert made.is_success, made.text
        await client.post(f"/channels/{made.json()['id']}/test")
        session = (await client.post("/sessions", json={"title": "t"})).json()["id"]
        await client.post(f"/sessions/{session}/messages", json={"content": "Hello"})
        booked = {"kind": "message", "message": "Look.", "delay_ms": 1000}
        assert (await client.post(f"/sessions/{session}/schedules", json=booked)).is_success

        async def are_over() -> bool:
            runs = (await client.get("/runs")).json()["runs"]
            return [run["status"] for run in runs] == ["success"] * 2

        await eventually(are_over, 20)
    logged.send_signal(signal.SIGTERM)
    assert logged.wait(30) == 0
    text = (tmp_path / "log").read_text()
    found = Counter(re.findall(r"^\S+ (\w+) +[\w.]+: (.*?)(?= \w+=|$)", text, re.MULTILINE))
    for level in ("info", "warning"):
        found.pop((level, "programs are confined"), None)  # what the machine can do
    moments = ("server starting", "schema migrated", "server ready", "wake fired", "server stopping", "server stopped")
    assert found == {
        **{("info", moment): 1 for moment in moments},
        ("info", "run ended"): 2,
        ("warning", "notice not sent over a channel"): 1,
    }, text
    assert "Unknown child process" not in text
    assert "Traceback" not in text


def _closed() -> int:
    return -1


def _full() -> int:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    _readers.append(reader)
    return writer


def _unread() -> int:
    reader, writer = os.pipe()
    os.close(reader)
    return writer


_readers: list[int] = []  # kept open: nobody reads them


def start(environment, port: int, number: int, place: int) -> subprocess.Popen[bytes]:
    """Start a server with one of its standard streams closed or replaced."""
    return subprocess.Popen(
        (WAKEFUL, "serve", "--port", str(port)),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: os.close(number) if place < 0 else os.dup2(place, number),
    )


@pytest.mark.whole
@pytest.mark.parametrize("number", [pytest.param(1, id="stdout"), pytest.param(2, id="stderr")])
@pytest.mark.parametrize("make", [_closed, _full, _unread])
async def test_a_server_starts_and_stops_whatever_its_output_is(environment, number, make):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = make()

    process = start(environment, port, number, place)
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:

            async def is_ready() -> bool:
                assert process.poll() is None
                with contextlib.suppress(httpx.ConnectError):
                    return (await client.get("/readyz")).status_code == 200
                return False

            await eventually(is_ready)
            headers = {"Authorization": f"Bearer {TOKEN}"}
            assert (await client.get("/agents", headers=headers)).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        for each in ([place] if place >= 0 else []) + _readers:
            os.close(each)
        _readers.clear()


async def test_a_hangup_does_not_end_the_server(logged, tmp_path):
    address, _ = logged.read_addresses()
    logged.send_signal(signal.SIGHUP)

    async def is_logged() -> bool:
        return "SIGHUP" in (tmp_path / "log").read_text()

    await eventually(is_logged)
    async with httpx.AsyncClient(base_url=address) as client:
        assert (await client.get("/healthz")).status_code == 200
    logged.send_signal(signal.SIGTERM)
    assert logged.wait(20) == 0
