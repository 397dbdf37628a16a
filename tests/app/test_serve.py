"""The server as people start it: a real process, asked over HTTP, told to stop by a signal.

The command itself is started once; the other processes are forked from one that has imported it.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

import forked_process

WAKEFUL = Path(sys.executable).parent / "wakeful"
TOKEN = "a-short-token"  # which a server on loopback warns about


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    return plain | {
        "WAKEFUL_DATA_DIR": str(tmp_path / "data"),
        "WAKEFUL_CONFIG_DIR": str(tmp_path / "config"),
        "WAKEFUL_TOKEN": TOKEN,
    }


@pytest.fixture
def run(environment: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return forked_process.run(arguments, environment | more, tmp_path / "errors of a command")

    return run


@pytest.fixture
def server(environment: dict[str, str], tmp_path: Path) -> Iterator[forked_process.Forked]:
    process = forked_process.Forked(("serve", "--port", "0"), environment, tmp_path / "errors")
    assert re.search(r"http://\S+", process.stdout.readline())
    yield process
    process.close()


def test_it_says_that_it_is_alive_and_ready_and_ends_in_good_order(environment):
    process = subprocess.Popen(
        [WAKEFUL, "serve", "--port", "0"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        address = re.search(r"http://\S+", process.stdout.readline())
        assert address is not None
        with urlopen(f"{address[0]}/healthz") as answer:
            assert json.load(answer)["ok"] is True
        with urlopen(Request(f"{address[0]}/readyz", headers={"Authorization": f"Bearer {TOKEN}"})) as answer:
            assert json.load(answer) == {"ok": True, "problems": []}
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=10)
        assert (process.returncode, "Traceback" in errors) == (0, False), errors
    finally:
        process.kill()
        process.communicate()


def test_a_short_token_on_loopback_is_warned_about(server, tmp_path):
    log = (tmp_path / "errors").read_text()
    assert "token is short" in log
    assert TOKEN not in log


def test_a_port_that_is_taken_is_named(run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = run("serve", "--port", str(port))
    assert refused.returncode == 1
    assert f"127.0.0.1:{port}" in refused.stderr
    assert "--port" in refused.stderr


def test_migrate_brings_an_empty_directory_up_to_date(run, tmp_path):
    done = run("migrate")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "data" / "wakeful.sqlite").stat().st_size > 0
    assert (tmp_path / "config" / "device.key").stat().st_mode & 0o777 == 0o600


def test_a_damaged_device_key_is_named_and_left_alone(run, tmp_path):
    key = tmp_path / "config" / "device.key"
    key.parent.mkdir()
    key.write_text("not a key\n")
    refused = run("migrate")
    assert refused.returncode == 1
    assert "device.key" in refused.stderr
    assert key.read_text() == "not a key\n"
