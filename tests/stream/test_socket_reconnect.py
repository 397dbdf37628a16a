"""Connections cut at any moment: after a reconnect every frame comes once, in order, also from another server."""

import asyncio
import contextlib
import random

import asyncpg
import pytest
from websockets.exceptions import ConnectionClosed

from fixtures.stores import IS_LONG
from live_server import (
    ENDS,
    Tap,
    assert_consecutive,
    eventually,
    kinds,
    of_kind,
    provided,
    running_server,
    seqs,
    text_of,
)
from openai_server import call, calls, stream, text, thinking

SEEDS = range(40 if IS_LONG else 8)
WORDS = [f"{number} " for number in range(60)]


def chatter(random_source, words=WORDS):
    """Make an answer that comes in uneven bits."""
    pieces = []
    for word in words:
        pieces += text(word)
        if random_source.random() < 0.5:
            pieces.append(random_source.uniform(0.001, 0.03))
    return stream(*pieces)


class Reader:
    """A client of the protocol: keeps what has a number, drops what it has, and fails on a gap."""

    def __init__(self):
        self.frames = []
        self.syncs = 0

    @property
    def last(self):
        return self.frames[-1]["seq"] if self.frames else 0

    @property
    def is_done(self):
        return bool(self.frames) and self.frames[-1]["type"] in ENDS

    def take(self, frame, *, may_repeat):
        if frame["type"] == "session_sync":
            self.syncs += 1
        if "seq" not in frame:
            return
        if may_repeat and frame["seq"] <= self.last:
            assert frame == self.frames[frame["seq"] - 1], "a replayed frame differs from what was said"
            return
        assert frame["seq"] == self.last + 1, f"{frame['seq']} came after {self.last}"
        self.frames.append(frame)

    async def read(self, server, session, most, *, by_number):
        """Connect, read some frames, and cut the connection."""
        after = self.last if by_number else None
        with contextlib.suppress(ConnectionClosed):
            async with server.watch(session, after=after, is_fresh=False) as client:
                for _ in range(most):
                    frame = await client.next()
                    self.take(frame, may_repeat=not by_number)
                    if self.is_done or (not by_number and frame["type"] == "session_sync"):
                        return  # it is over, and nothing more comes to those who have no number
                client.cut()


@pytest.mark.parametrize("seed", SEEDS)
async def test_random_cuts_leave_no_gap_and_no_repeat(tmp_path, seed):
    source = random.Random(seed)
    async with running_server({"data_dir": tmp_path, "config_dir": tmp_path, "store_encryption": False}) as server:
        session = await server.session()
        write = call("write_file", '{"path": "a.txt", "content": "x"}')
        server.provider.then(calls(*thinking("Let me ", "see."), *write), chatter(source))
        sent = await server.call("POST", f"/sessions/{session}/messages", json={"content": "Count"})
        reader = Reader()
        async with asyncio.timeout(20):
            while not reader.is_done:
                # Only who has a number to go on from can come back after the end; before, either way works.
                by_number = source.random() < 0.6 or (await server.run(sent["run_id"]))["status"] == "success"
                await reader.read(server, session, source.randint(1, 12), by_number=by_number)
        assert seqs(reader.frames) == list(range(1, len(reader.frames) + 1))
        assert text_of(reader.frames) == "".join(WORDS) == reader.frames[-1]["content"]
        assert text_of(reader.frames, "thinking_delta") == "Let me see."
        assert reader.frames == (await server.call("GET", f"/runs/{sent['run_id']}/events"))["events"]


@pytest.mark.parametrize("seed", SEEDS)
async def test_reconnects_without_a_number_get_the_whole_run_each_time(tmp_path, seed):
    source = random.Random(seed)
    async with running_server({"data_dir": tmp_path, "config_dir": tmp_path, "store_encryption": False}) as server:
        session = await server.session()
        server.provider.then(chatter(source))
        sent = await server.call("POST", f"/sessions/{session}/messages", json={"content": "Count"})
        await eventually(lambda: _has_spoken(server, sent["run_id"]))
        for _ in range(5):
            async with server.watch(session, is_fresh=False) as client:
                first = await client.next()
                if first["type"] == "session_sync":
                    break  # it has ended
                start = await client.expect("replay_start")
                replayed = [await client.next() for _ in range(start["count"])]
                assert all("seq" in frame for frame in replayed)
                await client.expect("replay_end")
                live = [await client.next() for _ in range(source.randint(0, 3))]
                assert first["type"] == "stream_start"
                assert_consecutive([first, *replayed, *live], first=1)
                assert "".join(WORDS).startswith(text_of([*replayed, *live]))
                client.cut()

        async def is_over():
            return (await server.run(sent["run_id"]))["status"] == "success"

        await eventually(is_over)


async def _has_spoken(server, run_id):
    return (await server.call("GET", f"/runs/{run_id}/events"))["events"]


@pytest.mark.parametrize("by_number", [True, False], ids=["by number", "by replay"])
async def test_a_run_goes_on_after_a_restart_and_so_do_its_numbers(backend_settings, by_number):
    tap, reader = Tap(), Reader()
    async with provided() as provider:
        provider.then(calls(*text("I write. "), *call("write_file", '{"path": "a.txt", "content": "x"}')), tap)
        async with running_server(backend_settings, provider) as server:
            session = await server.session()
            async with server.watch(session) as client:
                await client.say("Write and count")
                for word in ("one ", "two "):
                    await tap.is_asked.wait()
                    tap.say(word)
                    while not text_of(reader.frames).endswith(word):
                        reader.take(await client.next(), may_repeat=False)
        before = len(reader.frames)
        provider.then(stream(*text("one ", "two ", "three"), 0.05, *text(" four")))
        async with running_server(backend_settings, provider) as server:
            async with asyncio.timeout(20):
                while not reader.is_done:
                    await reader.read(server, session, 3, by_number=by_number)
                    if not by_number and not reader.is_done:
                        run_id = reader.frames[0]["run_id"]
                        by_number = (await server.run(run_id))["status"] == "success"
            [run] = await server.runs_of(session)
            messages = await server.messages(session)
            events = await server.call("GET", f"/runs/{run['id']}/events")
    assert reader.frames == events["events"]
    again = reader.frames[before:]
    starts = of_kind(reader.frames, "stream_start")
    assert [start["run_id"] for start in starts] == [run["id"]] * 2
    after_start = again[again.index(starts[1]) + 1 :]
    assert text_of(after_start) == "one two three four" == reader.frames[-1]["content"]
    assert kinds(after_start) == ["stream_delta", "stream_end"]  # the tool was not called again
    assert run["status"] == "success"
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[reader.frames[-1]["message_index"]]["content"] == "one two three four"


@pytest.mark.parametrize("seed", SEEDS)
async def test_random_restarts_and_cuts_leave_no_gap_and_no_repeat(tmp_path, seed):
    source, reader = random.Random(seed), Reader()
    settings = {"data_dir": tmp_path, "config_dir": tmp_path, "store_encryption": False}
    session = None
    async with provided(always=chatter(source)) as provider:
        for turn in range(3):
            async with running_server(settings, provider) as server:
                if session is None:
                    session = await server.session()
                    await server.call("POST", f"/sessions/{session}/messages", json={"content": "Count"})
                for _ in range(source.randint(1, 3)):
                    if not reader.is_done:
                        await reader.read(server, session, source.randint(1, 6), by_number=True)
                if turn == 2:
                    async with asyncio.timeout(20):
                        while not reader.is_done:
                            await reader.read(server, session, 1_000, by_number=True)
                    said = (await server.messages(session))[-1]["content"]
    numbers = [index for index, frame in enumerate(reader.frames) if frame["type"] == "stream_start"]
    assert text_of(reader.frames[numbers[-1] :]) == "".join(WORDS) == said == reader.frames[-1]["content"]


async def test_a_client_of_another_node_sees_a_run_live(postgres_url, tmp_path):
    def settings(name):
        places = {"data_dir": tmp_path / name, "config_dir": tmp_path / "config", "database_url": postgres_url}
        return places | {"socket_heartbeat_seconds": 60}

    tap = Tap()
    async with provided(tap) as provider, running_server(settings("a"), provider) as node_a:
        session = await node_a.session()
        async with running_server(settings("b"), provider) as node_b:
            await node_b.node.engine.stop()  # so that it is A who works
            async with node_a.watch(session) as at_a, node_b.watch(session) as at_b:
                await at_b.say("Count")
                for word in ("one ", "two ", "three"):
                    tap.say(word)
                    told = (await at_b.until("stream_delta", seconds=3))[-1]
                    assert told["delta"] == word
                    assert (await at_a.until("stream_delta", seconds=3))[-1] == told
                async with node_b.watch(session, is_fresh=False) as late:
                    replayed = await late.until("replay_end")
                    assert text_of(replayed) == "one two three"
                    tap.end()
                    assert kinds(await late.until("session_sync")) == ["stream_end", "session_sync"]
                assert await at_b.until("stream_end") == await at_a.until("stream_end")
            assert seqs(at_a.received) == seqs(at_b.received) == list(range(1, 6))


async def test_the_end_of_a_run_is_never_late_at_another_node(postgres_url, tmp_path):
    """Frames published while a subscriber reads from the store are sent too, not only at the next heartbeat."""

    def settings(name):
        places = {"data_dir": tmp_path / name, "config_dir": tmp_path / "config", "database_url": postgres_url}
        return places | {"socket_heartbeat_seconds": 60}

    async with (
        provided(always=stream(*text("one ", "two"))) as provider,
        running_server(settings("a"), provider) as node_a,
    ):
        session = await node_a.session()
        async with running_server(settings("b"), provider) as node_b:
            await node_b.node.engine.stop()
            async with node_b.watch(session) as client:
                for _ in range(60):
                    await client.say("Count")
                    assert (await client.until(*ENDS, seconds=3))[-1]["type"] == "stream_end"
            assert_consecutive(client.received, first=1)


async def test_a_stop_at_one_node_ends_the_run_at_the_other(postgres_url, tmp_path):
    def settings(name):
        return {"data_dir": tmp_path / name, "config_dir": tmp_path / "config", "database_url": postgres_url}

    tap = Tap()
    async with provided(tap) as provider, running_server(settings("a"), provider) as node_a:
        session = await node_a.session()
        async with running_server(settings("b"), provider) as node_b:
            await node_b.node.engine.stop()
            async with node_b.watch(session) as client:
                await client.say("Count")
                tap.say("one ")
                await client.until("stream_delta")
                assert (await node_b.stop(session))["ok"] is True
                assert (await client.until(*ENDS, seconds=2))[-1]["type"] == "stream_stopped"


async def test_a_client_that_is_ahead_of_a_postgres_that_went_back_loads_the_session_again(postgres_url, tmp_path):
    settings = {"data_dir": tmp_path, "config_dir": tmp_path, "database_url": postgres_url}
    async with running_server(settings) as server:
        session = await server.session()
        async with server.watch(session) as client:
            for answer in ("one", "two"):
                server.provider.then(stream(*text(answer)))
                await client.say("Count")
                await client.until("stream_end")
            connection = await asyncpg.connect(postgres_url)
            try:  # as a standby without the second run would have it
                await connection.execute("DELETE FROM events WHERE run_id = (SELECT MAX(run_id) FROM events)")
                await connection.execute(
                    "UPDATE sessions SET last_seq = (SELECT MAX(seq) FROM events) WHERE id = $1", session
                )
                await connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            finally:
                await connection.close()
            await client.expect("session_sync")
            server.provider.then(stream(*text("three")))
            await client.say("Count")
            assert (await client.until("stream_end"))[-1]["content"] == "three"
