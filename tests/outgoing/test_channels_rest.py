"""Channels as a person sets them up over REST, and what arrives there from agents and from the host."""

import asyncio

import pytest

from live_server import of_kind, running_server
from network.http_server import HttpServer
from openai_server import call, calls, say


@pytest.fixture
async def outside():
    async with HttpServer() as server:
        yield server


@pytest.fixture
async def server(settings):
    """Both stores have their turn in tests/outgoing/test_channels.py."""
    async with running_server(settings, fetch_private_hosts=["127.0.0.1"]) as server:
        yield server


async def add(server, outside, name="phone", **more):
    asked = {"name": name, "url": outside.url()} | more
    return await server.call("POST", "/channels", json=asked)


async def test_one_is_added_tried_turned_off_and_deleted_and_its_address_never_comes_back(server, outside):
    made = await add(server, outside)
    assert made["url"] == "json://127.0.0.1"
    assert made["enabled"] is True
    assert await server.call("POST", f"/channels/{made['id']}/test") == {"outcome": "sent"}
    assert (await outside.next())["title"] == "A test from Wakeful"
    changed = await server.call("PATCH", f"/channels/{made['id']}", json={"name": "mobile", "enabled": False})
    assert (changed["name"], changed["enabled"]) == ("mobile", False)
    listed = await server.rest.get("/channels")
    assert [each["name"] for each in listed.json()["channels"]] == ["mobile"]
    assert "secret" not in listed.text + str(made) + str(changed)
    await server.call("DELETE", f"/channels/{made['id']}")
    assert (await server.call("GET", "/channels"))["channels"] == []


async def test_what_an_agent_tells_arrives_and_the_answer_says_so(server, outside):
    await add(server, outside)
    session = await server.session()
    server.provider.then(calls(*call("notify", '{"title": "Red", "body": "Three tests fail."}')), say("Told."))
    async with server.watch(session) as client:
        frames = await client.ask("Tell me when it is red")
    [answer] = of_kind(frames, "tool_call")
    assert "inbox: saved" in answer["result"]
    assert "channel 'phone': sent." in answer["result"]
    assert answer["metadata"]["channels"]["phone"] == "sent"
    assert (await outside.next())["message"] == "Three tests fail."


async def test_what_the_host_tells_arrives_too(server, outside):
    """Here: an agent that kept itself going has booked nothing more."""
    await add(server, outside)
    session = await server.session()
    booking = '{"in_seconds": 3600, "instructions": "Read notes.txt with read_file."}'
    server.provider.then(calls(*call("schedule_next_run", booking)), say("Booked."), say("Done, for good."))
    async with server.watch(session) as client:
        await client.ask("Go on by yourself")
    [agent] = (await server.call("GET", "/agents"))["agents"]
    await server.call("POST", f"/agents/{agent['id']}/next-run/run-now")
    assert "has no next run scheduled" in (await outside.next())["title"]


async def test_one_that_fails_shows_it_on_its_row_and_the_inbox_has_it_all_the_same(server, outside):
    outside.status = 500
    channel = await add(server, outside)
    session = await server.session()
    server.provider.then(calls(*call("notify", '{"title": "Red", "body": "Three tests fail."}')), say("Told."))
    async with server.watch(session) as client:
        frames = await client.ask("Tell me when it is red")
    [answer] = of_kind(frames, "tool_call")
    assert "channel 'phone': failed (" in answer["result"]
    assert "500" in answer["result"]
    [shown] = (await server.call("GET", "/channels"))["channels"]
    assert shown["id"] == channel["id"]
    assert "500" in shown["last_error"]
    [notice] = (await server.call("GET", "/notifications"))["notifications"]
    assert notice["title"] == "Red"


async def test_a_muted_wake_tells_the_inbox_alone(server, outside):
    await add(server, outside)
    session = await server.session()
    asked = {"call_type": "once", "when": "2h", "additional_context_message": "Use notify."}
    wake = (await server.call("POST", f"/sessions/{session}/recall", json=asked))["recall"]["id"]
    assert (await server.call("PATCH", f"/wakes/{wake}", json={"muted": True}))["muted"] is True
    server.provider.then(calls(*call("notify", '{"title": "Red", "body": "Three tests fail."}')), say("Told."))
    async with server.watch(session) as client:
        await server.call("POST", f"/sessions/{session}/recall/run-now")
        [answer] = of_kind(await client.until("stream_end"), "tool_call")
    assert "muted" in answer["result"]
    assert [each["title"] for each in (await server.call("GET", "/notifications"))["notifications"]] == ["Red"]
    assert outside.received == []


@pytest.mark.parametrize(
    ("asked", "status", "code", "words"),
    [
        ({"url": "syslog://local"}, 400, "bad_address", "HTTP or mail"),
        ({"url": "dbus://session"}, 400, "bad_address", "HTTP or mail"),
        ({"url": "file:///etc/passwd"}, 400, "bad_address", "no service is known"),
        ({"url": "json://secret/with blanks"}, 400, "bad_address", "SCHEMA://"),
        ({"url": f"json://secret/{'x' * 3000}"}, 400, "bad_address", "2,000 characters"),
        ({"url": "json://127.0.0.2/secret"}, 403, "private_address", "fetch_private_hosts"),
        ({"url": "json://localhost/secret"}, 403, "private_address", "fetch_private_hosts"),
        ({"url": "ntfy://127.0.0.2/secret"}, 403, "private_address", "'127.0.0.2'"),
        ({"url": "ntfy://localhost/secret"}, 403, "private_address", "fetch_private_hosts"),
        ({"url": "matrix://10.0.0.1/secret"}, 403, "private_address", "'10.0.0.1'"),
        ({"url": "mailto://u:secret@example.org?smtp=127.0.0.2"}, 403, "private_address", "'127.0.0.2'"),
        ({"url": "json://[::ffff:127.0.0.2]/secret"}, 403, "private_address", "fetch_private_hosts"),
        ({"url": "json://2130706434/secret"}, 403, "private_address", "fetch_private_hosts"),
        ({"url": "json://169.254.169.254/secret"}, 403, "private_address", "'169.254.169.254'"),
        ({"url": "json://127.0.0.1/x", "name": "inbox"}, 400, None, "'inbox'"),
        ({"url": "json://127.0.0.1/x", "command": "rm"}, 422, None, "command"),
    ],
)
async def test_what_is_refused_says_why_and_repeats_no_secret(server, asked, status, code, words):
    answer = await server.rest.post("/channels", json={"name": "phone"} | asked)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert code in (None, error["code"])
    assert words in answer.text
    assert "secret" not in answer.text
    assert (await server.call("GET", "/channels"))["channels"] == []


async def test_while_a_channel_is_slow_nobody_else_waits(server, outside):
    outside.is_silent = True
    channel = await add(server, outside)
    trying = asyncio.create_task(server.call("POST", f"/channels/{channel['id']}/test"))
    await outside.next()
    session = await server.session()
    server.provider.then(say("Hello."))
    async with server.watch(session) as client:
        assert (await client.ask("Hello?"))[-1]["type"] == "stream_end"
    assert not trying.done()
    trying.cancel()
    await asyncio.gather(trying, return_exceptions=True)
