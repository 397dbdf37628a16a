"""`wakeful chat` with a server behind a proxy with TLS, and over a slow connection."""

import json
from contextlib import asynccontextmanager

import pytest

from live_server import Tap, running_server
from network.slow_line import slow_line
from network.tls_proxy import tls_proxy
from openai_server import call, calls, say
from terminal import CTRL_C, environment, pipe, typed


@pytest.fixture(scope="module")
async def shared_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("far")
    settings = {
        "data_dir": folder / "data",
        "config_dir": folder / "config",
        "store_encryption": False,
        "allowed_hosts": ["localhost", "127.0.0.1"],  # with the ports of the proxies
    }
    async with running_server(settings) as server:
        yield server


@pytest.fixture
async def server(shared_server):
    async with shared_server.as_new_owner() as server:
        yield server


def port_of(server) -> int:
    return int(server.address.rpartition(":")[2])


@asynccontextmanager
async def chatting(server, session, folder, *options):
    async with typed("chat", "--session", session, *options, environment=environment(server, folder)) as chat:
        await chat.until("/help lists commands")
        yield chat


async def test_a_chat_over_tls_streams_and_stops(server, session, tmp_path):
    server.provider.then(tap := Tap(), say("Again."))
    async with tls_proxy("localhost", port_of(server), tmp_path) as port:
        options = ("--url", f"https://localhost:{port}", "--ca", str(tmp_path / "proxy.pem"))
        async with chatting(server, session, tmp_path, *options) as chat:
            chat.enter("Tell me")
            tap.say("Once upon a time")
            await chat.until("Once upon a time")  # before the answer has ended
            chat.type(CTRL_C)
            await chat.until("Stopped.")
            chat.enter("And now?")
            await chat.until("Again.")
            assert await chat.leave() == 0


async def test_a_chat_over_tls_refuses_a_certificate_that_it_does_not_know(server, session, tmp_path):
    async with tls_proxy("localhost", port_of(server), tmp_path) as port:
        code, _, errors = await pipe(
            server, tmp_path, "chat", "--session", session, "--url", f"https://localhost:{port}"
        )
    assert code == 3
    assert "certificate" in errors
    assert "--ca" in errors


async def test_a_chat_over_a_slow_line_streams(server, session, tmp_path):
    server.provider.then(
        tap := Tap(), calls(*call("write_file", json.dumps({"path": "a.txt", "content": "x"}))), say("Done.")
    )
    async with (
        slow_line(port_of(server)) as port,
        chatting(server, session, tmp_path, "--url", f"http://127.0.0.1:{port}") as chat,
    ):
        chat.enter("Tell me")
        tap.say("Once upon a time")
        await chat.until("Once upon a time")  # before the answer has ended
        tap.say(", long ago.")
        await chat.until(", long ago.")
        tap.end()
        await chat.until("tokens")
        chat.enter("Write it")
        await chat.until("✓ write_file")
        await chat.until("Done.")
        assert await chat.leave() == 0
