"""A client that does not read: nobody else notices, and it gets everything when it reads again."""

import pytest

from openai_server import event, stream, text, usage
from served import Tap, Timer, assert_consecutive, eventually, served, text_of
from wakeful.hub import MOST_BYTES, MOST_FRAMES
from wakeful.runtime.asking import Reply

LONG = "x" * 150_000
MANY = 80  # frames of that size: far more than a queue and the buffers of a connection hold


@pytest.fixture
async def server(tmp_path, monkeypatch):
    monkeypatch.setattr(
        Reply.__init__, "__defaults__", (10**9,)
    )  # longer answers than a run may give, to fill what lies in between
    settings = {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config", "store_encryption": False}
    async with served(settings) as server:
        yield server


def stuck(server, session):
    """A client whose buffers are as small as they can be and who does not read."""
    return server.watch(session, max_queue=1)


def queues(server, session):
    """The queues of those who watch a session."""
    return list(server.node.services.hub._topics[f"session:{session}"])


async def test_a_client_that_does_not_read_delays_nobody_and_gets_everything_later(server):
    session = await server.session()
    tap = Tap()
    server.provider.then(tap)
    async with stuck(server, session) as slow, server.watch(session) as quick:
        await quick.say("Say much")
        await quick.until("stream_start")
        for number in range(MANY):
            async with Timer() as timer:
                tap.say(f"{number} {LONG}")
                await quick.until("stream_delta")
            assert timer.seconds < 2.0
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
                assert len(queue._frames) <= MOST_FRAMES
                most = max(most, queue._bytes)
        assert most <= MOST_BYTES
        assert any(queue.is_behind for queue in queues(server, session))
        assert text_of(await slow.until("stream_end", seconds=30)) == LONG * MANY


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
        async with Timer() as timer:
            tap.say("Well")
            assert (await client.next())["delta"] == "Well"
        assert timer.seconds < 1.0  # the bench measures it properly
        tap.end()
        await client.until("stream_end")


async def test_pieces_that_come_close_together_are_one_frame(server):
    session = await server.session()
    many = b"".join(event(piece) for piece in text(*["word "] * 3_000))
    server.provider.then(stream(many, usage(1, 3_000)))
    async with server.watch(session) as client:
        frames = await client.ask("Say much")
    assert text_of(frames) == "word " * 3_000
    assert len(frames) < 300
