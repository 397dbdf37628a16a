"""Answering a message again and editing it, over REST: what the model reads, and what people see."""

import pytest

from live_server import eventually, running_server
from openai_server import call, calls, say


@pytest.fixture(scope="module")
async def shared_server(shared_settings):
    async with running_server(shared_settings, store_encryption=False) as server:
        yield server


@pytest.fixture
async def server(shared_server):
    async with shared_server.as_new_owner() as server:
        yield server


async def talk(server, session, content, *answers):
    server.provider.then(*answers)
    async with server.watch(session) as client:
        await client.say(content)
        await client.until("stream_end")
    return [each for each in await messages(server, session) if each["role"] == "user"][-1]


async def messages(server, session):
    return (await server.call("GET", f"/sessions/{session}"))["messages"]


async def retry(server, session, message, *answers, **body):
    server.provider.then(*answers)
    async with server.watch(session) as client:
        path = f"/sessions/{session}/messages/{message['id']}/retry"
        run = (await server.call("POST", path, json=body))["run_id"]
        ended = (await client.until("stream_end"))[-1]
    assert (await messages(server, session))[ended["message_index"]]["content"] == ended["content"]
    return run


async def test_an_edited_message_is_answered_anew_and_the_model_does_not_read_the_earlier_version(server):
    session = await server.session()
    await talk(server, session, "My name is Ada.", say("Hello, Ada."))
    asked = await talk(
        server, session, "Sing of Rome.", calls(*call("write_file", '{"path": "song", "content": "la"}')), say("La.")
    )
    run = await retry(server, session, asked, say("Lo."), content="Sing of Troy.")
    sent = str(server.provider.last["messages"])
    assert "My name is Ada." in sent
    assert "Sing of Troy." in sent
    assert "Rome" not in sent
    assert "song" not in sent
    found = await messages(server, session)
    assert next(each["content"] for each in found if each.get("superseded_by") == run) == "Sing of Rome."
    assert [each["content"] for each in found if not each.get("superseded_by")] == [
        "My name is Ada.", "Hello, Ada.", "Sing of Troy.", "Lo.",
    ]  # fmt: skip
    text = (await server.rest.get(f"/sessions/{session}/export.md")).text
    assert "## User (earlier version) · " in text
    assert text.index("Sing of Rome.") < text.index("Sing of Troy.")


async def test_a_message_before_a_scheduled_run_stays_as_it_is(server):
    session = await server.session()
    asked = await talk(server, session, "Hello?", say("Hello."))
    server.provider.then(say("Woken."))
    await server.book(session, "Look")

    async def is_over():
        return any(each["content"] == "Woken." for each in await messages(server, session))

    await eventually(is_over, seconds=20)
    refused = await server.rest.post(f"/sessions/{session}/messages/{asked['id']}/retry", json={})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_the_last_message")
    woken = [each for each in await messages(server, session) if each["role"] == "user"][-1]
    refused = await server.rest.post(f"/sessions/{session}/messages/{woken['id']}/retry")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_the_last_message")


async def test_empty_text_is_refused(server):
    session = await server.session()
    asked = await talk(server, session, "Hello?", say("Hello."))
    refused = await server.rest.post(f"/sessions/{session}/messages/{asked['id']}/retry", json={"content": " "})
    assert (refused.status_code, refused.json()["error"]["field"]) == (400, "content")
