"""An answer that promises later work without a booking: one reminder within the run, then a notice."""

import json

import pytest

from live_server import of_kind, running_server, text_of
from openai_server import call, calls, say

PROMISE = "The build still runs. I'll check again in 20 minutes."
BRIEF = {"call_type": "once", "when": "20 minutes", "additional_context_message": "Look at /tmp/build.log again."}
BOOK = calls(*call("schedule_recall", json.dumps(BRIEF), id="b1"))


def reminders(server):
    """Return how often each request contained the reminder."""
    return [json.dumps(request.body["messages"]).count("nothing is booked") for request in server.provider.requests]


async def notices(server):
    listed = (await server.call("GET", "/notifications"))["notifications"]
    return [notice for notice in listed if notice["code"] == "unkept_promise"]


async def test_a_promise_that_is_booked_after_the_reminder_ends_without_a_notice(server, session, client):
    server.provider.then(say(PROMISE), BOOK, say("Booked."))
    frames = await client.ask("How is the build?")
    run = await server.run(frames[0]["run_id"])
    assert (run["status"], run["note"], run["usage"]["model_calls"]) == ("success", None, 3)
    assert reminders(server) == [0, 1, 1]
    told = server.provider.requests[1].body["messages"][-1]
    assert told["role"] == "user"
    assert told["content"].startswith("[From the server, not from your user]")
    assert '"I\'ll check again in 20 minutes."' in told["content"]
    [note] = of_kind(frames, "server_note")
    assert note["code"] == "promise"
    saved = await server.messages(session)
    assert [(message["role"], message["note"]) for message in saved if message["role"] == "notice"] == [
        ("notice", "promise")
    ]
    assert await notices(server) == []


async def test_a_promise_that_stays_unbooked_ends_with_a_notice(server, session, client):
    server.provider.then(say(PROMISE), say("As I said, I'll look again later."))
    frames = await client.ask("How is the build?")
    run = await server.run(frames[0]["run_id"])
    assert (run["status"], run["note"]) == ("success", "unkept_promise")
    assert reminders(server) == [0, 1]
    assert frames[-1]["content"] == "As I said, I'll look again later."
    assert [note["code"] for note in of_kind(frames, "server_note")] == ["promise", "unkept_promise"]
    [notice] = await notices(server)
    assert notice["run_id"] == run["id"]
    last = (await server.messages(session))[-1]
    assert (last["role"], last["remark"]) == ("assistant", "unkept_promise")


async def test_a_future_time_in_another_language_gets_the_model_asked_once_and_believed(server, client):
    server.provider.then(say("Ich schaue in 20 Minuten noch einmal nach."), say("Nein, das war ein Zitat."))
    frames = await client.ask("Wie steht der Build?")
    assert (await server.run(frames[0]["run_id"]))["note"] is None
    assert [note["code"] for note in of_kind(frames, "server_note")] == ["promise"]
    assert '"Ich schaue in 20 Minuten noch einmal nach."' in server.provider.requests[1].body["messages"][-1]["content"]
    assert frames[-1]["content"] == "Nein, das war ein Zitat."
    assert await notices(server) == []


async def test_silence_after_the_reminder_is_a_broken_promise_too(server, client):
    server.provider.then(say(PROMISE), say(" "))
    frames = await client.ask("How is the build?")
    assert (await server.run(frames[0]["run_id"]))["note"] == "unkept_promise"
    assert len(await notices(server)) == 1


async def test_a_run_that_has_booked_may_promise(server, client):
    server.provider.then(BOOK, say(PROMISE))
    frames = await client.ask("How is the build?")
    assert text_of(frames) == PROMISE
    assert reminders(server) == [0, 0]


async def test_a_promise_that_a_pending_wake_keeps_needs_no_other(server, client):
    server.provider.then(BOOK, say("Booked."), say(PROMISE))
    await client.ask("Look again in 20 minutes.")
    await client.ask("And now?")
    assert reminders(server) == [0, 0, 0]


@pytest.mark.parametrize("changes", [{"self_scheduling": False}, {"toolsets": ["files", "notify"]}])
async def test_an_agent_that_cannot_book_is_not_reminded(server, client, changes):
    await server.change_agent(**changes)
    server.provider.then(say(PROMISE))
    frames = await client.ask("How is the build?")
    assert (await server.run(frames[0]["run_id"]))["note"] is None
    assert of_kind(frames, "server_note") == []


async def test_an_offer_is_no_promise(server, client):
    server.provider.then(say("If you want, I can check again in 20 minutes."))
    frames = await client.ask("How is the build?")
    assert of_kind(frames, "server_note") == []


async def test_the_reminder_is_not_given_when_no_model_call_is_left(server, client):
    await server.change_agent(max_iterations=1)
    server.provider.then(say(PROMISE))
    frames = await client.ask("How is the build?")
    assert (await server.run(frames[0]["run_id"]))["note"] == "unkept_promise"
    assert text_of(frames) == frames[-1]["content"] == PROMISE


async def test_the_next_run_is_reminded_anew(server, client):
    server.provider.then(say(PROMISE), BOOK, say("Booked."))
    await client.ask("How is the build?")
    await server.call("DELETE", f"/sessions/{(await server.call('GET', '/sessions'))['sessions'][0]['id']}/recall")
    server.provider.then(say(PROMISE), say("No."))
    frames = await client.ask("And now?")
    assert [note["code"] for note in of_kind(frames, "server_note")] == ["promise", "unkept_promise"]


async def test_a_setting_turns_it_off(settings):
    async with running_server(settings, promise_reminders=False) as server:
        server.provider.then(say(PROMISE))
        async with server.watch(await server.session()) as client:
            frames = await client.ask("How is the build?")
        assert (await server.run(frames[0]["run_id"]))["note"] is None
