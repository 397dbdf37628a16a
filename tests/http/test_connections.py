"""Limits of connections: unfinished requests are closed, unauthenticated clients and each token have a limit."""

import asyncio
import contextlib
import json
import os
import re
import resource
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from live_server import TOKEN, Patient, Tap, eventually, running_server
from network.own_connections import own_connections
from openai_server import improvise
from wakeful.cli.server import Server
from wakeful.cli.target import Target
from wakeful.http import connections as limits
from wakeful.http.connections import Connections, CountedHttp, TimedRequests
from wakeful.stream.wire import Wire

BEARER = {"Authorization": f"Bearer {TOKEN}"}
WAKEFUL = Path(sys.executable).parent / "wakeful"
PATIENT = Patient(first=120, between=120)  # hundreds of requests hold up the model's answer too


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


@pytest.mark.whole
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


# ── Connections of a token ─────────────────────────────────────────────────────────────────────────────────────────


def waiting_call(tool, **arguments):
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


@contextlib.asynccontextmanager
async def a_long_run(server):
    """Start a run whose model does not answer, and yield its id."""
    tap = Tap()
    server.provider.then(tap)
    async with server.watch(await server.session()) as client:
        await client.say("Take your time.")
        started = await client.until("stream_start")
        yield started[-1]["run_id"]
        tap.end()
        await client.until("stream_end")


@contextlib.asynccontextmanager
async def posted(server, token, body, count=1):
    """Send `count` calls to /mcp, each over a connection of its own; yields their readers, after the first byte."""
    text = json.dumps(body)
    head = [
        f"POST /mcp HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer {token}\r\nContent-Length: {len(text)}",
        "Content-Type: application/json\r\nMCP-Protocol-Version: 2025-06-18",
        "Accept: application/json, text/event-stream",
    ]
    async with contextlib.AsyncExitStack() as stack:
        readers = []
        for _ in range(count):
            reader, _ = await stack.enter_async_context(opened(server, "\r\n".join([*head, "", text])))
            readers.append(reader)
        await asyncio.gather(*(first_byte(reader) for reader in readers))
        yield readers


async def first_byte(reader):
    with contextlib.suppress(ConnectionError):
        return await reader.read(1)


async def test_a_read_token_that_waits_for_a_run_shuts_nobody_out(settings, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (800, 800))  # so that 400 connections are the most
    async with running_server(settings, patient=PATIENT) as server, a_long_run(server) as run_id:
        token = (await server.call("POST", "/tokens", json={"name": "reader", "scope": "read"}))["secret"]
        async with posted(server, token, waiting_call("get_run", run_id=run_id, wait_seconds=60), 600):
            for _ in range(8):
                assert (await server.call("GET", "/me"))["scope"] == "admin"


async def test_a_token_may_have_so_many_requests_in_progress(settings):
    async with (
        running_server(settings, patient=PATIENT, connections_per_token=3) as server,
        a_long_run(server) as run_id,
    ):
        token = (await server.call("POST", "/tokens", json={"name": "reader", "scope": "read"}))["secret"]
        async with (
            posted(server, token, waiting_call("get_run", run_id=run_id, wait_seconds=60), 3),
            server.client(token) as client,
        ):
            refused = await client.get("/me")
            assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
            assert refused.json()["error"]["code"] == "too_many_connections"
            assert "connections_per_token" in refused.json()["error"]["hint"]
            async with server.watch_events(token=token):  # sockets have a limit of their own
                assert (await server.call("GET", "/me"))["scope"] == "admin"
        await eventually(lambda: answers_200(server, token))


async def answers_200(server, token):
    async with server.client(token) as client:
        return (await client.get("/me")).status_code == 200


async def test_an_idle_connection_of_a_token_gives_way_to_its_next_one(settings):
    async with running_server(settings, connections_per_token=2) as server, contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(server.client(TOKEN)) for _ in range(5)]
        for client in clients + clients:
            assert (await client.get("/me")).status_code == 200


async def test_a_token_may_wait_for_so_many_answers_at_a_time(settings):
    async with running_server(settings, patient=PATIENT, waits_per_token=2) as server, a_long_run(server) as run_id:
        waits = waiting_call("get_run", run_id=run_id, wait_seconds=60)
        async with posted(server, TOKEN, waits, 2):
            for asked in (
                waits,
                waiting_call("ask_agent", message="Hello?", wait_seconds=1),  # starts no run
            ):
                async with posted(server, TOKEN, asked) as [reader]:
                    refused = await reader.readuntil(b'"isError":true')
                    assert b"waits_per_token" in refused
            logs = await server.rest.get("/logs", params={"wait": 1})
            assert (logs.status_code, logs.json()["error"]["code"]) == (429, "too_many_waits")
            assert logs.headers["Retry-After"] == "1"
            async with posted(server, TOKEN, waiting_call("get_run", run_id=run_id)) as [reader]:
                await reader.readuntil(b'"isError":false')
            assert (await server.rest.get("/logs")).status_code == 200


# ── What we use of uvicorn ──────────────────────────────────────────────────────────────────────────────────────────


@contextlib.asynccontextmanager
async def counted(app, most=50):
    """A bare application on a real port, its connections counted."""
    connections = Connections(
        most=most,
        most_unauthenticated=50,
        most_per_address=50,
        most_per_token=50,
        most_sockets_per_token=50,
        most_waits_per_token=50,
        seconds=5,
    )
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
            limits.mark_authenticated(scope["state"], "a-token", is_socket=True)
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
    assert (connections.unauthenticated, connections.by_holder) == ({}, {})


async def test_at_the_total_cap_the_token_with_the_most_connections_loses_the_one_it_needs_least():
    async def app(scope, receive, send):
        _, token, does = scope["path"].split("/")
        limits.mark_authenticated(scope["state"], token, is_socket=False)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        if does != "idle":
            with limits.waiting(scope["state"], does == "wait"):
                await receive()
                await receive()  # until the client disconnects
        await send({"type": "http.response.body", "body": b"b"})

    async with counted(app, most=6) as (port, connections), contextlib.AsyncExitStack() as stack:
        server = SimpleNamespace(address=f"http://127.0.0.1:{port}")

        async def open_one(path=None):
            head = f"GET {path} HTTP/1.1\r\nHost: HOST\r\n\r\n" if path else ""
            reader, _ = await stack.enter_async_context(opened(server, head))
            if path:
                await reader.readuntil(b"ab" if path.endswith("idle") else b"\r\n\r\na")
            return reader

        paths = ("/few/idle", "/many/busy", "/many/wait", "/many/idle", "/many/busy", "/few/idle")
        held = [(path, await open_one(path)) for path in paths]

        async def closed():
            return [path for path, reader in held if reader.at_eof() or reader.exception()]

        await open_one()  # a newcomer
        assert await eventually(closed) == ["/many/idle"]
        await open_one()
        held = [each for each in held if each[0] != "/many/idle"]
        assert await eventually(closed) == ["/many/wait"]
        assert len(connections.all) == 6


async def test_pings_of_a_client_that_reads_nothing_are_not_kept_in_memory():
    async def app(scope, receive, send):
        await receive()
        await send({"type": "websocket.accept"})
        limits.mark_authenticated(scope["state"], "a-token", is_socket=True)
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
