"""Stopping a run: before, during and after each of its steps, within two seconds."""

import asyncio

import pytest

from live_server import Patient, Tap, kinds, running_server, text_of
from openai_server import call, calls, say, thinking

NOTHING = {"ok": False, "reason": "no active run"}


def is_stopped(answer, was="running"):
    return answer["ok"] and answer["was"] == was and bool(answer["run_id"])


WORDS = [f"{number} " for number in range(20)]


@pytest.fixture(scope="module")
async def shared_server(shared_settings):
    async with running_server(shared_settings, patient=Patient(pause=30)) as server:
        yield server


@pytest.fixture
async def server(shared_server):
    async with shared_server.as_new_owner() as server:
        await server.change_agent(toolsets=["files", "shell"])
        yield server


async def stop(server, session, client):
    """Stop, and return the frames until the end."""
    assert is_stopped(await server.stop(session))
    frames = await client.until("stream_stopped")
    [run] = await server.runs_of(session)
    assert (run["status"], run["reason"]) == ("stopped", "stopped")
    return frames


async def test_without_a_run_there_is_nothing_to_stop(server, session, client):
    assert await server.stop(session) == NOTHING
    server.provider.then(say("Done."))
    await client.ask("Do it")
    assert await server.stop(session) == NOTHING
    await client.nothing_more()


async def test_a_run_is_stopped_before_its_model_has_said_a_word(server, session, client):
    tap = Tap()
    server.provider.then(tap)
    await client.say("Go on")
    await tap.is_asked.wait()
    assert kinds(await stop(server, session, client)) == ["stream_start", "stream_stopped"]
    assert [message["role"] for message in await server.messages(session)] == ["user"]
    await asyncio.wait_for(tap.is_hung_up.wait(), 2)


async def test_what_was_said_before_the_stop_is_kept_and_marked(server, session, client):
    tap = Tap()
    server.provider.then(tap)
    await client.say("Tell me a long story")
    tap.let(*thinking("A story."))
    tap.say("Once ", "upon ", "a time")
    await client.until("stream_delta")
    await stop(server, session, client)
    last = (await server.messages(session))[-1]
    assert (last["role"], last["content"], last["is_cut_off"]) == ("assistant", "Once upon a time", True)
    assert text_of(client.received) == "Once upon a time"
    await asyncio.wait_for(tap.is_hung_up.wait(), 2)


async def test_the_model_reads_the_half_answer_in_the_next_run(server, session, client):
    tap = Tap()
    server.provider.then(tap)
    await client.say("Tell me a long story")
    tap.say("Once upon")
    await client.until("stream_delta")
    await stop(server, session, client)
    server.provider.then(say("…a time."))
    await client.ask("Go on")
    told = [(message["role"], message["content"]) for message in server.provider.last["messages"][1:]]
    assert told == [("user", "Tell me a long story"), ("assistant", "Once upon"), ("user", "Go on")]


async def test_after_a_stop_in_a_tool_the_model_is_told_that_the_call_was_interrupted(server, session, client):
    server.provider.then(calls(*call("run_command", '{"command": "sleep 60"}', id="c1")))
    await client.say("Sleep")
    await client.until("tool_started")
    await stop(server, session, client)
    server.provider.then(say("I was interrupted."))
    assert (await client.ask("What happened?"))[-1]["type"] == "stream_end"
    _, _, asked, result, _ = server.provider.last["messages"]
    assert asked["tool_calls"][0]["id"] == "c1"
    assert (result["role"], result["tool_call_id"]) == ("tool", "c1")
    assert "interrupted" in result["content"]


async def test_a_headless_run_is_stopped_in_the_same_way(server, session, client):
    tap = Tap()
    server.provider.then(tap)
    wake = await server.book(session)
    tap.say("Well")
    await client.until("stream_delta")
    await stop(server, session, client)
    await client.expect("session_sync")
    ended = await server.node.wakes.get(wake.id, wake.user_id)
    assert (ended.status, ended.reason) == ("fired", "stopped")


async def test_stop_by_the_runs_own_address_works_too(server, session, client):
    tap = Tap()
    server.provider.then(tap)
    await client.say("Go on")
    tap.say("Well")
    frames = await client.until("stream_delta")
    stopped = await server.call("POST", f"/runs/{frames[0]['run_id']}/stop")
    assert stopped == {"ok": True, "run_id": frames[0]["run_id"], "was": "running"}
    await client.until("stream_stopped")
    assert await server.call("POST", f"/runs/{frames[0]['run_id']}/stop") == NOTHING


async def test_a_stop_that_comes_with_the_answer_ends_the_run_once(server, session, client):
    """Whichever comes first, there is one end, and the next message is taken."""
    for number in range(10):
        server.provider.then(say(*WORDS))
        await client.say(str(number))
        await client.until("stream_start")
        answer = await server.stop(session)
        frames = await client.until("stream_end", "stream_stopped")
        assert answer["ok"] or frames[-1]["type"] == "stream_end"
        [latest, *_] = await server.runs_of(session)
        assert latest["status"] == ("stopped" if frames[-1]["type"] == "stream_stopped" else "success")
    server.provider.forget()  # some were stopped before they asked
    await client.nothing_more()
