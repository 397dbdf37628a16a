"""A client that does not read: it delays no other, is closed in time, and gets everything after a reconnect."""

import asyncio
import socket
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import pytest

from live_server import TOKEN, Tap, assert_consecutive, eventually, running_server, text_of
from openai_server import stream, text, varied
from wakeful.app import listening
from wakeful.core.events import DatabaseChanged
from wakeful.core.hub import MAX_BYTES, MAX_FRAMES, session_topic
from wakeful.loop import model_call
from wakeful.stream import sockets, wire

LONG = varied(150_000)
FLOOD = 30  # frames of that size: more than the buffers of a connection hold
MANY = 80  # frames of that size: far more than a queue and the buffers of a connection hold


@pytest.fixture
async def server(tmp_path, monkeypatch):
    monkeypatch.setattr(model_call, "MAX_SAID", 10**9)  # longer than a run may answer, to fill the buffers in between
    settings = {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config", "store_encryption": False}
    async with running_server(settings) as server:
        yield server


def narrow(server):
    """Connect with a small receive buffer."""
    parts = urlsplit(server.address)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    connection.connect((parts.hostname, parts.port))
    return connection


def stuck(server, session):
    """A client whose buffers are as small as they can be and who does not read."""
    return server.watch(session, max_queue=1, sock=narrow(server))


def queues(server, session):
    """Return the queues of a session's subscribers."""
    return server.node.services.hub.subscriptions(session_topic(session))


async def test_a_client_that_does_not_read_delays_nobody_and_gets_everything_later(server):
    session = await server.session()
    tap = Tap()
    server.provider.then(tap)
    async with stuck(server, session) as slow, server.watch(session) as quick:
        await quick.say("Say much")
        await quick.until("stream_start")
        for number in range(MANY):
            tap.say(f"{number} {LONG}")
            await quick.until("stream_delta")
        tap.end()
        end = (await quick.until("stream_end"))[-1]
        frames = await slow.until("stream_end", seconds=30)
        assert frames[-1] == end
        assert_consecutive(frames, first=1)
        assert text_of(frames) == end["content"]
        await slow.nothing_more()


async def test_the_queue_of_a_client_that_does_not_read_is_bounded(server):
    session = await server.session()
    server.provider.then(stream(*[piece for number in range(MANY) for piece in (*text(LONG), 0.021)]))
    async with stuck(server, session) as slow, server.watch(session) as quick:
        await quick.say("Say much")
        most = 0
        while (await quick.next(30))["type"] != "stream_end":
            for queue in queues(server, session):
                assert len(queue.frames) <= MAX_FRAMES
                most = max(most, queue.bytes)
        assert most <= MAX_BYTES
        assert any(queue.is_behind for queue in queues(server, session))
        assert text_of(await slow.until("stream_end", seconds=30)) == LONG * MANY


async def test_a_client_that_does_not_read_is_read_a_bounded_page_from_the_store(server):
    session = await server.session()
    frames = await flood(server, session)
    rows = await server.node.store.read(lambda tx: tx.sessions.events_after(session, 0, 200, MAX_BYTES))
    sizes = [sum(len(frame) for frame in row.frames) for row in rows]  # a row is what was said in 100 ms
    assert sum(sizes[:-1]) < MAX_BYTES <= sum(sizes)
    assert [frame.seq for frame in await server.node.services.stream.after(session, 0)][-1] == rows[-1].last_seq
    seen = []
    while more := await server.node.services.stream.after(session, seen[-1] if seen else 0):
        seen += [frame.seq for frame in more]
    assert seen == list(range(1, frames[-1]["seq"] + 1))


async def test_a_client_that_leaves_without_reading_leaves_nothing_behind(server):
    session = await server.session()
    server.provider.then(stream(*[piece for _ in range(20) for piece in (*text(LONG), 0.021)]))
    async with server.watch(session) as quick:
        async with stuck(server, session) as slow:
            await quick.say("Say much")
            await quick.until("stream_delta")
            slow.cut()
        await quick.until("stream_end", seconds=30)

        async def is_alone():
            return len(queues(server, session)) == 1

        await eventually(is_alone)


async def test_the_first_piece_of_an_answer_is_not_held_back(server):
    session = await server.session()
    tap = Tap()
    server.provider.then(tap)
    async with server.watch(session) as client:
        await client.say("Go on")
        await client.until("stream_start")
        tap.say("Well")
        assert (await client.next())["delta"] == "Well"
        tap.end()
        await client.until("stream_end")


# ── Closed in time ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def pinging(monkeypatch):
    """Have servers that start from now on ping often, and wait for little."""
    monkeypatch.setattr(listening, "PING_SECONDS", 0.5)
    monkeypatch.setattr(wire, "CLOSE_SECONDS", 1.0)


@pytest.fixture
async def pinging_server(pinging, server):
    return server


async def flood(server, session):
    """Have a session say more than all buffers between the server and a client hold."""
    server.provider.then(stream(*[piece for _ in range(FLOOD) for piece in (*text(LONG), 0.021)]))
    async with server.watch(session) as quick:
        await quick.say("Say much")
        return await quick.until("stream_end", seconds=30)


async def flood_events(server):
    user = (await server.call("GET", "/me"))["user"]["id"]
    async with server.watch_events() as quick:
        for number in range(FLOOD):
            server.node.store.deliver(DatabaseChanged(f"agent-{number}", user, LONG, 0, None))
        return [await quick.next() for _ in range(FLOOD)]


async def is_unwatched(server, topic):
    return server.node.services.hub.count_listeners(topic) == 0


async def test_a_watcher_that_reads_nothing_is_closed_and_catches_up_later(pinging_server):
    server = pinging_server
    session = await server.session()
    async with stuck(server, session) as slow:
        frames = await flood(server, session)
        await eventually(lambda: is_unwatched(server, f"session:{session}"), seconds=10)
        slow.cut()
    async with server.watch(session, after=frames[0]["seq"] - 1) as again:
        assert await again.until("stream_end") == frames


async def test_a_watcher_of_events_that_reads_nothing_is_closed_and_catches_up_later(pinging_server):
    server = pinging_server
    user = (await server.call("GET", "/me"))["user"]["id"]
    async with server.watch_events(max_queue=1, sock=narrow(server)) as slow:
        frames = await flood_events(server)
        await eventually(lambda: is_unwatched(server, f"user:{user}"), seconds=10)
        slow.cut()
    async with server.watch_events(after=frames[0]["seq"] - 1) as again:
        assert [await again.next() for _ in frames] == frames


async def test_a_watcher_that_reads_again_before_it_is_cut_off_is_told_why(pinging_server, monkeypatch):
    monkeypatch.setattr(wire, "CLOSE_SECONDS", 20.0)
    server = pinging_server
    session = await server.session()
    async with stuck(server, session) as slow:
        await flood(server, session)
        await asyncio.sleep(1.5)  # longer than a ping is waited for
        assert await slow.closing() == (1013, "This client read nothing for some time. Connect again with ?after=SEQ.")


async def test_a_watcher_that_reads_slowly_is_not_closed(pinging_server):
    async with pinging_server.watch_events(max_queue=1, sock=narrow(pinging_server)) as slow:
        frames = await flood_events(pinging_server)
        for frame in frames:  # about 2 MB a second, behind 3 MB: every ping comes too late
            assert await slow.next() == frame
            await asyncio.sleep(0.08)
        await slow.socket.ping()
        await slow.nothing_more()


# ── When the server stops ───────────────────────────────────────────────────────────────────────────────────────────


async def read_nothing(server, path):
    """Ask for something over HTTP and read nothing of the answer."""
    reader, writer = await asyncio.open_connection(sock=narrow(server), limit=1)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {urlsplit(server.address).netloc}\r\n".encode())
    writer.write(f"Authorization: Bearer {TOKEN}\r\n\r\n".encode())
    await reader.readexactly(1)
    return writer


async def test_clients_that_read_nothing_do_not_hold_up_the_end_of_the_server(settings, monkeypatch):
    monkeypatch.setattr(model_call, "MAX_SAID", 10**9)
    async with AsyncExitStack() as held, running_server(settings) as server:
        session = await server.session()
        await held.enter_async_context(stuck(server, session))
        await flood(server, session)
        writer = await read_nothing(server, f"/sessions/{session}")
        held.callback(writer.transport.abort)
        began = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - began < 4.5  # uvicorn would wait for them for 5 s


# ── When its token ends ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_client_that_reads_nothing_does_not_keep_others_from_being_closed(settings, monkeypatch):
    monkeypatch.setattr(model_call, "MAX_SAID", 10**9)
    monkeypatch.setattr(sockets, "CHECK_EVERY", 0.1)
    monkeypatch.setattr(sockets, "REVOKED_CLOSE_SECONDS", 0.5)
    async with running_server(settings) as server:
        session, other = await server.session(), await server.session()
        made = await server.call("POST", "/tokens", json={"name": "script", "scope": "chat"})
        async with (
            server.watch(
                session, token=made["secret"], max_queue=1, sock=narrow(server)
            ),  # first, so that it is closed first
            server.watch(other, token=made["secret"]) as reading,
        ):
            await flood(server, session)
            await server.call("DELETE", f"/tokens/{made['token']['id']}")
            assert (await reading.closing(5))[0] == 4001
            await eventually(lambda: is_unwatched(server, f"session:{session}"), seconds=5)
