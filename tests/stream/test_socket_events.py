"""/ws/events: news of everything a user owns, and of nothing else."""

import asyncio

import pytest

from live_server import Tap, assert_consecutive, kinds, of_kind
from openai_server import refuse, say


@pytest.fixture
async def client(server):
    async with server.watch_events() as client:
        yield client


async def hear(client, kind, **fields):
    """Wait for a frame of a kind with these fields."""
    async with asyncio.timeout(5):
        while True:
            frame = await client.next()
            if frame["type"] == kind and all(frame.get(name) == value for name, value in fields.items()):
                return frame


async def test_someone_who_comes_is_told_to_load_everything(server):
    async with server.watch_events(is_fresh=False) as client:
        assert await client.next() == {"type": "session_sync"}
        await client.nothing_more()


async def test_silence_is_filled_with_heartbeats(client):
    assert await client.next(3, is_heartbeat_wanted=True) == {"type": "heartbeat"}


async def test_a_session_is_told_when_it_is_made_renamed_and_deleted(server, client):
    session = await server.session("A name")
    made = await hear(client, "session_update", session_id=session)
    assert set(made) == {"type", "seq", "session_id", "agent_id", "title", "action"}
    assert (made["title"], made["action"]) == ("A name", "changed")
    await server.call("PATCH", f"/sessions/{session}", json={"title": "Another"})
    await hear(client, "session_update", session_id=session, title="Another")
    await server.call("DELETE", f"/sessions/{session}")
    gone = await hear(client, "session_update", session_id=session, action="deleted")
    assert set(gone) == {"type", "seq", "session_id", "action"}


async def test_a_title_that_was_found_is_told(server, client):
    session = await server.session(title="")
    server.provider.then(say("Paris."), say("Capital of France"))
    async with server.watch(session) as watcher:
        await watcher.ask("What is the capital of France?")
    await hear(client, "session_update", session_id=session, title="Capital of France")


async def test_an_agent_is_told_when_it_is_made_changed_and_deleted(server, client):
    agent = await server.call("POST", "/agents", json={"name": "Marvin"})
    made = await hear(client, "agent_update", agent_id=agent["id"])
    assert set(made) == {"type", "seq", "agent_id", "name", "action"}
    assert (made["name"], made["action"]) == ("Marvin", "changed")
    await server.call("PATCH", f"/agents/{agent['id']}", json={"name": "Zaphod"})
    await hear(client, "agent_update", agent_id=agent["id"], name="Zaphod")
    await server.call("DELETE", f"/agents/{agent['id']}")
    await hear(client, "agent_update", agent_id=agent["id"], action="deleted")


async def test_an_agent_that_is_changed_twice_is_told_twice(server, client):
    agent = await server.change_agent(description="One")
    first = await hear(client, "agent_update", agent_id=agent["id"])
    await server.change_agent(description="Two")  # in the frame nothing is different, and yet it is another change
    second = await hear(client, "agent_update", agent_id=agent["id"])
    assert second["seq"] > first["seq"]


async def test_a_pause_of_everything_is_told_of_each_agent_and_its_end_too(server, client):
    agents = [each["id"] for each in (await server.call("GET", "/agents"))["agents"]]
    other = await server.call("POST", "/agents", json={"name": "Marvin"})
    await hear(client, "agent_update", agent_id=other["id"])
    for method, asked in (("PUT", {"json": {"preset": "1h"}}), ("DELETE", {})):
        await server.call(method, "/pause", **asked)
        lacking = {*agents, other["id"]}
        while lacking:
            lacking.discard((await hear(client, "agent_update"))["agent_id"])


async def test_a_run_is_told_from_queue_to_end(server, client):
    session = await server.session()
    tap = Tap()
    server.provider.then(tap)
    sent = await server.call("POST", f"/sessions/{session}/messages", json={"content": "Go on"})
    running = await hear(client, "run_update", run_id=sent["run_id"], status="running")
    assert set(running) <= {"type", "seq", "run_id", "agent_id", "session_id", "wake_id", "trigger", "status", "reason"}
    assert (running["session_id"], running["trigger"]) == (session, "message")
    tap.end()
    await hear(client, "run_update", run_id=sent["run_id"], status="success")


async def test_a_run_that_fails_is_told_with_its_reason(server, client):
    session = await server.session()
    server.provider.then(refuse(400, "No."))
    sent = await server.call("POST", f"/sessions/{session}/messages", json={"content": "Go on"})
    failed = await hear(client, "run_update", run_id=sent["run_id"], status="failed")
    assert failed["reason"] == "model_failed"


async def test_both_sockets_say_the_same_of_a_recall(server, client):
    session = await server.session()
    server.provider.then(say("Awake."), refuse(400, "No."))
    asked = {"call_type": "recurring", "when": "1h", "interval_seconds": 3600, "additional_context_message": "Look."}
    async with server.watch(session) as watcher:
        await server.call("POST", f"/sessions/{session}/recall", json=asked)
        await server.call("PATCH", f"/sessions/{session}/recall", json={"when": "2h"})
        await server.call("POST", f"/sessions/{session}/recall/skip")
        for status in ("success", "failed"):
            await server.call("POST", f"/sessions/{session}/recall/run-now")
            await hear(client, "run_update", session_id=session, status=status)
        await server.call("DELETE", f"/sessions/{session}/recall")
        await hear(client, "recall_update", session_id=session, action="cancelled")
        await hear(watcher, "recall_update", action="cancelled")
        here, there = (
            [_news_of(frame) for frame in of_kind(each.received, "recall_update")] for each in (client, watcher)
        )
    assert here == there
    assert [frame["action"] for frame in here] == [
        "scheduled", "rescheduled", "skipped", "fired", "rescheduled", "fired", "failed", "rescheduled", "cancelled",
    ]  # fmt: skip


async def test_the_next_time_of_a_recall_is_told_before_the_client_loads_the_session_again(server):
    session = await server.session()
    server.provider.then(say("Awake."))
    asked = {"call_type": "recurring", "when": "1h", "interval_seconds": 3600, "additional_context_message": "Look."}
    async with server.watch(session) as watcher:
        await server.call("POST", f"/sessions/{session}/recall", json=asked)
        await server.call("POST", f"/sessions/{session}/recall/run-now")
        await watcher.until("stream_end")
        assert kinds(await watcher.until("session_sync")) == ["recall_update", "session_sync"]


def _news_of(frame):
    return {name: value for name, value in frame.items() if name not in ("seq", "run_id")}


async def test_nobody_hears_of_what_others_own(server, client):
    grace = await server.add_user()
    async with server.watch_events(token=grace) as other:
        mine = await server.session("Mine")
        theirs = await server.call("POST", "/sessions", token=grace, json={"title": "Theirs"})
        server.provider.then(say("One."), say("Two."))
        await server.call("POST", f"/sessions/{mine}/messages", json={"content": "Hello"})
        await hear(client, "run_update", session_id=mine, status="success")
        await server.call("POST", f"/sessions/{theirs['id']}/messages", token=grace, json={"content": "Hello"})
        await hear(other, "run_update", session_id=theirs["id"], status="success")
        last = await server.session("A last one")  # so that what was on its way to the wrong one has arrived
        await hear(client, "session_update", session_id=last)
        assert {frame.get("session_id") for frame in client.received} == {mine, last, None}
        assert {frame.get("session_id") for frame in other.received} == {theirs["id"], None}


async def test_after_a_number_only_what_is_lacking_is_sent(server, client):
    for number in range(5):
        await server.session(f"Number {number}")
    await hear(client, "session_update", title="Number 4")
    known = [frame for frame in client.received if "seq" in frame]
    for index, frame in enumerate(known):
        async with server.watch_events(after=frame["seq"]) as again:
            assert [await again.next() for _ in known[index + 1 :]] == known[index + 1 :]
    async with server.watch_events(after=known[-1]["seq"]) as again:
        session = await server.session("One more")
        await hear(again, "session_update", session_id=session)
        assert_consecutive(again.received, first=known[-1]["seq"] + 1)


@pytest.mark.parametrize("after", ["1", "99999999999999999", "abc", "-5"])
async def test_a_number_that_was_not_given_here_is_answered_with_a_sync(server, client, after):
    await server.session("Something")
    await hear(client, "session_update", title="Something")
    async with server.watch_events(after=after) as again:
        assert await again.next() == {"type": "session_sync"}
