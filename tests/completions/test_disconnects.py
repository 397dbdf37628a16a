"""Clients that wait in silence, hang up, or ask at the same time; on both stores where they are involved."""

import asyncio
import json
from datetime import timedelta

import pytest

from live_server import Tap, eventually
from openai_server import say


def body(*contents, **more):
    roles = ("user", "assistant")
    messages = [{"role": roles[place % 2], "content": each} for place, each in enumerate(contents)]
    return {"model": "Wakeful", "messages": messages} | more


async def begin(server, sent, headers=None):
    """Send a request over a socket of our own, so that it can be cut at any step."""
    host, port = server.address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    content = json.dumps(sent).encode()
    lines = [
        "POST /v1/chat/completions HTTP/1.1",
        f"Host: {host}:{port}",
        f"Authorization: Bearer {server.token}",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
        *(f"{name}: {value}" for name, value in (headers or {}).items()),
    ]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
    await writer.drain()
    return reader, writer


async def runs(server):
    return (await server.call("GET", "/runs"))["runs"]


async def wait_for_status(server, status):
    async def is_there():
        return [each["status"] for each in await runs(server)] == [status]

    await eventually(is_there)


@pytest.mark.parametrize("is_streamed", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("step", ["asked", "answering"])
async def test_a_run_stops_when_a_client_that_cannot_come_back_hangs_up(server, is_streamed, step):
    tap = Tap()
    server.provider.then(tap)
    reader, writer = await begin(server, body("Hi", stream=is_streamed))
    await asyncio.wait_for(tap.is_asked.wait(), 10)
    if step == "answering":
        tap.say("Hel")
        if is_streamed:
            await asyncio.wait_for(reader.readuntil(b"Hel"), 10)
    writer.transport.abort()
    await wait_for_status(server, "stopped")
    await asyncio.wait_for(tap.is_hung_up.wait(), 10)


@pytest.mark.parametrize("is_streamed", [True, False], ids=["stream", "whole"])
async def test_a_run_goes_on_when_its_client_can_come_back(server, is_streamed):
    tap = Tap()
    server.provider.then(tap)
    headers = {"X-OpenWebUI-Chat-Id": "c"}
    _, writer = await begin(server, body("Hi", stream=is_streamed), headers)
    await asyncio.wait_for(tap.is_asked.wait(), 10)
    writer.transport.abort()
    await asyncio.sleep(0.1)  # it is noticed that it has gone
    tap.say("Hello")
    tap.end()
    await wait_for_status(server, "success")
    server.provider.then(say("Fine"))
    again = await server.rest.post("/v1/chat/completions", json=body("Hi", "", "And?"), headers=headers)
    assert again.json()["choices"][0]["message"]["content"] == "Fine"
    sent = [each["content"] for each in server.provider.last["messages"][1:]]
    assert sent == ["Hi", "Hello", "And?"]  # the agent knows what it answered


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
async def test_a_request_that_is_cut_in_the_middle_starts_nothing(server, part):
    host, port = server.address.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    content = json.dumps(body("Hi" * 1000)).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {server.token}\r\n"
    whole = f"{head}Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content
    writer.write(whole[: int(len(whole) * part)])
    await writer.drain()
    writer.transport.abort()
    server.provider.then(say("Hello"))
    assert (await server.rest.post("/v1/chat/completions", json=body("Hi"))).is_success
    assert len(await runs(server)) == 1


async def test_a_silent_stream_sends_comments(server, monkeypatch):
    monkeypatch.setattr(server.node.services.completions, "quiet", timedelta(seconds=0.05))
    tap = Tap()
    server.provider.then(tap)
    reader, writer = await begin(server, body("Hi", stream=True))
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    assert b"x-accel-buffering: no" in head.lower()
    first = await asyncio.wait_for(reader.readuntil(b"\n\n"), 10)
    assert b'"role":"assistant"' in first
    assert not tap.is_asked.is_set() or b"content" in first  # the role comes before the model is asked for anything
    for _ in range(3):
        await asyncio.wait_for(reader.readuntil(b": waiting\n\n"), 10)
    tap.say("Done")
    tap.end()
    await asyncio.wait_for(reader.readuntil(b"[DONE]"), 10)
    writer.close()
    await writer.wait_closed()


async def test_a_run_that_is_stopped_on_the_page_ends_the_stream_with_an_error(server):
    tap = Tap()
    server.provider.then(tap)
    reader, writer = await begin(server, body("Hi", stream=True), {"X-Wakeful-Session": "mine"})
    await asyncio.wait_for(tap.is_asked.wait(), 10)
    [run] = await runs(server)
    await server.call("POST", f"/runs/{run['id']}/stop")
    rest = await asyncio.wait_for(reader.readuntil(b"stopped the run"), 10)
    assert b"[DONE]" not in rest
    writer.close()
    await writer.wait_closed()


async def test_a_deleted_session_ends_the_stream_with_an_error(server):
    tap = Tap()
    server.provider.then(tap)
    reader, writer = await begin(server, body("Hi", stream=True), {"X-Wakeful-Session": "mine"})
    await asyncio.wait_for(tap.is_asked.wait(), 10)
    [session] = (await server.call("GET", "/sessions"))["sessions"]
    await server.call("DELETE", f"/sessions/{session['id']}")
    await asyncio.wait_for(reader.readuntil(b"deleted"), 10)
    writer.close()
    await writer.wait_closed()


async def test_two_requests_at_once_with_one_history_do_not_mix(stored_server):
    server = stored_server
    server.provider.then(say("Hello"))
    first = await server.rest.post("/v1/chat/completions", json=body("Hi"))
    server.provider.always = say("Fine")
    both = await asyncio.gather(
        *(server.rest.post("/v1/chat/completions", json=body("Hi", "Hello", more)) for more in ("A?", "B?"))
    )
    server.provider.always = None
    sessions = [each.headers["X-Wakeful-Session"] for each in both]
    assert len(set(sessions)) == 2
    assert first.headers["X-Wakeful-Session"] in sessions
    for session, more in zip(sessions, ("A?", "B?"), strict=True):
        assert [each["content"] for each in await server.messages(session)] == ["Hi", "Hello", more, "Fine"]


async def test_a_conversation_goes_on_and_is_forgotten_after_a_month(stored_server):
    server = stored_server
    server.provider.then(say("Hello"), say("Fine"), say("New"))
    first = await server.rest.post("/v1/chat/completions", json=body("Hi"))
    second = await server.rest.post("/v1/chat/completions", json=body("Hi", "Hello", "And?"))
    assert first.headers["X-Wakeful-Session"] == second.headers["X-Wakeful-Session"]
    later = server.node.clock.now() + timedelta(days=1)
    await server.node.store.write(lambda tx: tx.client_sessions.delete_old(later))
    third = await server.rest.post("/v1/chat/completions", json=body("Hi", "Hello", "And?", "Fine", "So?"))
    assert third.headers["X-Wakeful-Session"] != first.headers["X-Wakeful-Session"]
    shown = [each["content"] for each in await server.messages(third.headers["X-Wakeful-Session"])]
    assert shown == ["Hi", "Hello", "And?", "Fine", "So?", "New"]
