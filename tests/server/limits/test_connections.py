"""Limits of connections: unfinished requests are closed, unauthenticated clients and each token have a limit."""

import asyncio
import contextlib
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from live_server import TOKEN, eventually, running_server
from network.own_connections import own_connections
from openai_server import improvise
from wakeful.cli.client import Server
from wakeful.cli.remote.target import Target
from wakeful.server.limits import connections as limits
from wakeful.server.limits.connections import Connections, CountedHttp, TimedRequests
from wakeful.server.ws.protocol import Wire

BEARER = {"Authorization": f"Bearer {TOKEN}"}
WAKEFUL = Path(sys.executable).parent / "wakeful"


@pytest.fixture
async def server(settings):
    async with running_server(settings, request_timeout_seconds=1, unauthenticated_connections_per_address=4) as server:
        yield server


@contextlib.asynccontextmanager
async def opened(server, text=""):
    """Open a connection, and send something over it."""
    parts = urlsplit(server.address)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(text.replace("HOST", parts.netloc).encode())
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def rest_of(reader, seconds=8.0):
    """Read until the server closes the connection; fail if it does not."""
    received = bytearray()
    async with asyncio.timeout(seconds):
        with contextlib.suppress(ConnectionError):  # closed while the client was still sending
            while piece := await reader.read(65_536):
                received += piece
    return bytes(received)


HEAD = f"POST /sessions HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"


# ── Unfinished requests ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("sent", ["", "GET /healthz HT", "GET /healthz HTTP/1.1\r\nHost: HOST\r\n"])
async def test_a_request_whose_head_does_not_come_is_closed(server, sent):
    async with opened(server, sent) as (reader, _):
        assert await rest_of(reader) == b""


async def test_a_head_that_comes_byte_by_byte_is_closed(server):
    async with opened(server, "GET /healthz HTTP/1.1\r\nX: ") as (reader, writer):
        closing = asyncio.create_task(rest_of(reader))
        while not closing.done():
            writer.write(b"x")
            await asyncio.sleep(0.1)
        assert await closing == b""


async def test_the_second_request_of_a_connection_is_held_to_the_same_time(server):
    request = "GET /healthz HTTP/1.1\r\nHost: HOST\r\n\r\n"
    async with opened(server, request + "GET /hea") as (reader, _):
        assert (await rest_of(reader)).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("length", ["Content-Length: 1000", "Transfer-Encoding: chunked"])
async def test_a_body_that_does_not_come_is_answered_and_closed(server, length):
    async with opened(server, f"{HEAD}{length}\r\n\r\n") as (reader, _):
        answer = await rest_of(reader)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"request_timeout" in answer


async def test_a_body_that_comes_byte_by_byte_is_closed(server):
    async with opened(server, f"{HEAD}Content-Length: 1000\r\n\r\n") as (reader, writer):
        closing = asyncio.create_task(rest_of(reader))
        while not closing.done():
            writer.write(b" ")
            await asyncio.sleep(0.1)
        assert (await closing).startswith(b"HTTP/1.1 408")


async def test_a_body_that_nobody_wants_is_not_waited_for(server):
    wrong = HEAD.replace(TOKEN, "wrong")
    async with opened(server, f"{wrong}Content-Length: 1000\r\n\r\n") as (reader, _):
        assert (await rest_of(reader)).startswith(b"HTTP/1.1 401")


async def test_a_slow_body_that_goes_on_is_waited_for(server):
    body = b'{"title": "Slow"}'
    async with opened(server, f"{HEAD}Connection: close\r\nContent-Length: {len(body) + 24_000}\r\n\r\n") as (
        reader,
        writer,
    ):
        for _ in range(24):
            writer.write(b" " * 1000)
            await asyncio.sleep(0.1)
        writer.write(body)
        assert (await rest_of(reader)).startswith(b"HTTP/1.1 201")


async def test_a_client_that_reads_nothing_is_closed(monkeypatch):
    monkeypatch.setattr(limits, "UNREAD_SECONDS", 1.0)
    async with counted(sends(50_000_000)) as (port, connections):
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await eventually(lambda: holds(connections, 1))
        await eventually(lambda: holds(connections, 0))
        writer.close()


# ── Nagle's algorithm ───────────────────────────────────────────────────────────────────────────────────────────────


def established():
    """Return the local port, the remote port and TCP_NODELAY of every TCP connection of this process."""
    return [
        (each.getsockname()[1], each.getpeername()[1], each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0)
        for each in own_connections()
    ]


async def test_no_connection_waits_for_an_acknowledgement_before_it_sends_the_rest(settings):
    """With Nagle's algorithm a body waits 40 ms for the client's delayed acknowledgement of the headers."""
    async with running_server(settings, always=improvise) as server:
        port, model_port = urlsplit(server.address).port, urlsplit(server.provider.base_url).port
        command = Server(Target(url=server.address, token=TOKEN, token_from="this test", named_by="this test"))
        await asyncio.to_thread(command.get, "agents")
        async with server.watch(await server.session()) as client:
            await client.ask("Hello")
            connections = established()
        command.close()
    accepted = [is_set for local, _, is_set in connections if local == port]
    opened_by_us = [is_set for _, remote, is_set in connections if remote in (port, model_port)]
    assert len(accepted) >= 2  # the command's and the WebSocket
    assert model_port in [remote for _, remote, _ in connections]
    assert all(accepted)
    assert all(opened_by_us)


# ── Strangers ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_oldest_stranger_of_an_address_gives_way(settings):
    async with (
        running_server(settings, unauthenticated_connections_per_address=4) as server,
        contextlib.AsyncExitStack() as stack,
    ):
        held = [(await stack.enter_async_context(opened(server)))[0] for _ in range(4)]
        async with server.client(TOKEN) as client:
            assert (await client.get("/me")).status_code == 200
            assert await rest_of(held[0], 2) == b""
            # A connection with a token is nobody's to push out.
            held += [(await stack.enter_async_context(opened(server)))[0] for _ in range(8)]
            assert await rest_of(held[-5], 2) == b""
            assert (await client.get("/me")).status_code == 200


async def test_a_socket_is_no_unauthenticated(settings):
    async with running_server(settings, unauthenticated_connections_per_address=4, request_timeout_seconds=1) as server:
        session = await server.session()
        async with server.watch(session) as client, contextlib.AsyncExitStack() as stack:
            for _ in range(12):
                await stack.enter_async_context(opened(server))
            await asyncio.sleep(2.5)  # longer than any head may take
            await client.send("{}")
            await client.expect("error")


def test_unauthenticated_cannot_take_the_descriptors_nor_fill_the_log(tmp_path):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")} | {
        "WAKEFUL_DATA_DIR": f"{tmp_path}/data",
        "WAKEFUL_CONFIG_DIR": f"{tmp_path}/config",
        "WAKEFUL_TOKEN": TOKEN,
    }
    with (tmp_path / "log").open("w") as log, contextlib.ExitStack() as stack:
        process = subprocess.Popen(
            ["sh", "-c", f"ulimit -n 256; exec {WAKEFUL} serve --port 0"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        stack.callback(process.communicate)
        stack.callback(process.kill)
        address = re.search(r"http://\S+", process.stdout.readline())[0]
        port = urlsplit(address).port
        client = stack.enter_context(httpx.Client(base_url=address, headers=BEARER, timeout=20, verify=False))
        for number in range(900):
            held = socket.create_connection(("127.0.0.1", port), source_address=(f"127.0.0.{2 + number % 20}", 0))
            stack.callback(held.close)
            if number % 3 == 0:
                held.sendall(b"nonsense\r\n\r\n")
            if number % 50 == 0:
                assert client.get("/me").status_code == 200
                assert client.post("/sessions", json={}).status_code == 201
        descriptors = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
    assert descriptors < 200
    log = (tmp_path / "log").read_text()
    assert "system resource" not in log
    assert len(log.splitlines()) < 100, log


# ── Sockets of a token ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_token_has_so_many_sockets_and_is_refused_before_the_next_is_accepted(settings):
    async with running_server(settings, sockets_per_token=2) as server:
        other = (await server.call("POST", "/tokens", json={"name": "other", "scope": "read"}))["secret"]
        address = server.address.replace("http://", "ws://") + "/ws/events"
        async with server.watch_events(), server.watch_events(token=other):
            async with server.watch_events():
                with pytest.raises(InvalidStatus) as refused:
                    await connect(address, additional_headers=BEARER, proxy=None)
                assert refused.value.response.status_code == 429
                assert b"too_many_sockets" in refused.value.response.body
                async with server.watch_events(token=other):
                    pass
            await eventually(lambda: opens(address))


async def opens(address):
    try:
        async with connect(address, additional_headers=BEARER, proxy=None):
            return True
    except InvalidStatus:
        return False


# ── What we use of uvicorn ──────────────────────────────────────────────────────────────────────────────────────────


@contextlib.asynccontextmanager
async def counted(app):
    """A bare application on a real port, its connections counted."""
    connections = Connections(most=50, most_unauthenticated=50, most_per_address=50, seconds=5)
    config = uvicorn.Config(
        TimedRequests(app),
        port=0,
        http=lambda *given, **more: CountedHttp(*given, connections=connections, **more),
        ws=Wire,
        lifespan="off",
        log_config=None,
    )
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    try:
        yield server.servers[0].sockets[0].getsockname()[1], connections
    finally:
        await server.shutdown()


def sends(size):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(size)})

    return app


async def holds(connections, count):
    return len(connections.all) == count


async def test_a_connection_is_known_to_its_requests_and_to_the_socket_it_becomes():
    """If uvicorn's protocols no longer put `app_state` into the scope, every connection is a stranger's for ever."""
    seen = []

    async def app(scope, receive, send):
        seen.append((scope["type"], scope["state"]["connection"] in scope["state"]["connections"].unauthenticated))
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            limits.mark_authenticated(scope["state"])
            await receive()
            return
        await sends(1)(scope, receive, send)

    async with counted(app) as (port, connections):
        async with httpx.AsyncClient(verify=False) as client:
            await client.get(f"http://127.0.0.1:{port}/")
            async with connect(f"ws://127.0.0.1:{port}/", proxy=None):
                await eventually(lambda: holds(connections, 2))
                assert len(connections.unauthenticated) == 1
        await eventually(lambda: holds(connections, 0))  # it hears of the end of both
    assert seen == [("http", True), ("websocket", True)]
    assert (connections.unauthenticated, connections.by_network) == ({}, {})


async def test_pings_of_a_client_that_reads_nothing_are_not_kept_in_memory():
    async def app(scope, receive, send):
        await receive()
        await send({"type": "websocket.accept"})
        limits.mark_authenticated(scope["state"])
        while True:
            await send({"type": "websocket.send", "bytes": os.urandom(100_000)})

    async with counted(app) as (port, connections):
        async with connect(f"ws://127.0.0.1:{port}/", proxy=None, max_queue=1, compression=None) as client:

            def unsent():
                return next(iter(connections.all)).transport.get_write_buffer_size()

            await eventually(lambda: asyncio.sleep(0, unsent() > 0))
            before = unsent()
            for _ in range(5_000):
                await client.ping()
                await asyncio.sleep(0)
            await asyncio.sleep(0.3)
            grown = unsent() - before
            client.transport.abort()
        assert grown < 1_000
