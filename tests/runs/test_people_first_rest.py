"""With wakes queued in a session, a message sent on receipt of a run's end goes first, over REST and the socket."""

import asyncio
from datetime import datetime, timedelta

import pytest

from live_server import ENDS, Provider, Tap, eventually, running_server
from openai_server import say

ROUND_TRIP = 0.4  # seconds, of a client that is 200 ms away


class Agreeing(Provider):
    """A provider that answers everything in one word, but for what a test puts first."""

    def __init__(self) -> None:
        super().__init__(always=self._answer)
        self.first: Tap | None = None

    async def _answer(self, exchange):
        first, self.first = self.first, None
        await (first or say("Yes."))(exchange)


@pytest.fixture
async def server(backend_settings):
    async with Agreeing() as provider, running_server(backend_settings, provider) as server:
        yield server


async def book_queue(server, session, count=3):
    """Let a first message run up to a tap, and more of them queue behind it."""
    tap = Tap()
    server.provider.first = tap
    for number in range(count):
        await server.book(session, f"Wake {number}", kind="message", call_type="once", at=server.node.clock.now())
        if number == 0:
            await tap.is_asked.wait()
    await eventually(lambda: has_queued(server, session, count - 1))
    return tap


async def has_queued(server, session, count):
    return [run["status"] for run in await server.runs_of(session)].count("queued") == count


async def send(server, client, session, door):
    """Send a message after a round trip, and return whether it was taken before the wakes that wait."""
    await asyncio.sleep(ROUND_TRIP)
    if door == "rest":
        answer = await server.rest.post(f"/sessions/{session}/messages", json={"content": "Me!"})
        return answer.status_code == 202 and not await has_queued(server, session, 0)
    await client.say("Me!")
    frame = (await client.until("stream_start", "error"))[-1]
    return frame["type"] == "stream_start" and (await server.run(frame["run_id"]))["trigger"] == "message"


async def send_on_end(server, client, session, door):
    """Wait for a run's end and send; once more at the next end if this machine took longer than the second it has."""
    while True:
        await client.until(*ENDS)
        if await send(server, client, session, door):
            return True
        # Both times are read from the database server's clock, whose offset is measured again now and then.
        if await last_pause(server, session) < timedelta(seconds=0.9):
            return False


async def last_pause(server, session):
    """Return how long nothing ran before the latest run."""
    runs = [run for run in await server.runs_of(session) if run["started_at"]]
    *_, before, latest = sorted(runs, key=lambda run: run["started_at"])
    return datetime.fromisoformat(latest["started_at"]) - datetime.fromisoformat(before["finished_at"])


@pytest.mark.parametrize("door", ["websocket", "rest"])
async def test_a_message_sent_on_each_end_goes_before_the_queue(server, session, client, door):
    tap = await book_queue(server, session)
    tap.end()
    for _ in range(2):
        assert await send_on_end(server, client, session, door)


async def test_the_socket_may_be_open_on_another_node(postgres_url, tmp_path):
    place = {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config", "database_url": postgres_url}
    async with (
        Agreeing() as provider,
        running_server(place, provider) as runs,
        running_server(place, provider) as talks,
    ):
        session = await runs.session()
        await talks.node.engine.stop()  # so that the first node runs everything
        async with talks.watch(session) as client:
            tap = await book_queue(runs, session)
            tap.end()
            for _ in range(2):
                assert await send_on_end(talks, client, session, "websocket")


async def test_who_may_only_read_holds_nothing(server, session):
    made = await server.call("POST", "/tokens", json={"name": "r", "scope": "read"})
    async with server.watch(session, token=made["secret"]) as viewer:
        tap = await book_queue(server, session, 2)
        tap.end()
        await viewer.until(*ENDS)
        await viewer.until("stream_start", seconds=0.8)
