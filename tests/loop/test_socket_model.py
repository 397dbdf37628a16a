"""The loop between the socket and a provider: the requests it sends, and every kind of answer."""

import asyncio
import base64
import json
import re

import pytest

from live_server import Tap, assert_consecutive, eventually, kinds, of_kind, running_server
from openai_server import call, calls, chunk, hang_up, refuse, reply, say, stream, text, usage

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
READ = ("read_file", '{"path": "a.txt"}')


@pytest.fixture
async def server(sqlite_server):
    async with sqlite_server.as_new_owner() as server:
        yield server


def write(path, content="x", **place):
    return call("write_file", json.dumps({"path": path, "content": content}), **place)


# ── What the provider is sent ───────────────────────────────────────────────────────────────────────────────────────


async def test_the_provider_is_told_who_where_when_and_why(server, client):
    await server.change_agent(
        name="Marvin", description="A gloomy one.", system_prompt="Be gloomy.", timezone="Asia/Tokyo"
    )
    server.provider.then(say("Sigh."))
    await client.ask("Hello?")
    sent = server.provider.last
    assert (sent["model"], sent["stream"]) == ("test", True)
    system, user = sent["messages"]
    assert system["role"] == "system"
    assert system["content"].startswith("Be gloomy.")
    assert "'Marvin'. A gloomy one." in system["content"]
    assert "Your user is Owner." in system["content"]
    assert "has written to you" in system["content"]
    [(local, zone)] = re.findall(r"Now it is (\w+, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d) \((.+?)\)", system["content"])
    assert zone == "Asia/Tokyo, UTC+0900"
    assert local[:3] in ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    assert "is data" in system["content"]
    assert user == {"role": "user", "content": "Hello?"}


async def test_a_woken_run_is_told_what_woke_it(server, session, client):
    server.provider.then(say("I looked."))
    await server.book(session, "Look at a.txt", comment="Morning look")
    await client.until("session_sync")
    system, user = server.provider.last["messages"]
    assert "You were woken by a recall that your user had booked for" in system["content"]
    assert 'Its label, as data: "Morning look".' in system["content"]
    assert "No one will answer questions" in system["content"]
    assert user == {"role": "user", "content": "Look at a.txt"}


async def test_the_provider_is_shown_the_tools_of_the_agent_and_no_others(server, client):
    await server.change_agent(toolsets=["files", "recall"])
    server.provider.then(say("Ok."))
    await client.ask("Hello?")
    tools = {tool["function"]["name"]: tool["function"] for tool in server.provider.last["tools"]}
    assert {"read_file", "write_file", "schedule_recall"} <= set(tools)
    assert not {"run_command", "fetch_url"} & set(tools)
    assert tools["read_file"]["parameters"]["properties"]["path"]["type"] == "string"
    assert tools["read_file"]["description"]


async def test_an_agent_that_may_not_book_is_not_shown_how(server, client):
    await server.change_agent(toolsets=["files", "recall"], self_scheduling=False)
    server.provider.then(say("Ok."))
    await client.ask("Hello?")
    assert "schedule_recall" not in {tool["function"]["name"] for tool in server.provider.last["tools"]}


async def test_only_the_images_of_the_latest_messages_are_sent_again(server, client):
    encoded = base64.b64encode(PNG).decode()
    for number in range(4):
        server.provider.then(say("Seen."))
        await client.ask(f"Picture {number}", images=[encoded])
    users = [message for message in server.provider.last["messages"] if message["role"] == "user"]
    assert [sum(part["type"] == "image_url" for part in user["content"]) for user in users[1:]] == [1, 1, 1]
    assert "image_url" not in json.dumps(users[0])
    assert "too far back" in json.dumps(users[0])


async def test_calls_and_their_results_are_sent_back_in_their_order(server, client):
    server.provider.then(
        calls(*text("Two files."), *write("a.txt", id="c1"), *write("b.txt", index=1, id="c2")), say("Done.")
    )
    frames = await client.ask("Write")
    _, _, asked, first, second = server.provider.last["messages"]
    assert asked["role"] == "assistant"
    assert asked["content"] == "Two files."
    assert [(each["id"], each["function"]["name"]) for each in asked["tool_calls"]] == [
        ("c1", "write_file"),
        ("c2", "write_file"),
    ]
    assert json.loads(asked["tool_calls"][0]["function"]["arguments"]) == {"path": "a.txt", "content": "x"}
    results = [called["result"] for called in of_kind(frames, "tool_call")]
    assert [(each["role"], each["tool_call_id"], each["content"]) for each in (first, second)] == [
        ("tool", "c1", results[0]),
        ("tool", "c2", results[1]),
    ]


async def test_the_key_goes_to_the_provider_and_nowhere_else(settings):
    async with running_server(settings, model_api_key="sk-very-secret") as server:
        session = await server.session()
        async with server.watch(session) as client:
            server.provider.then(refuse(400, "Your key sk-very-secret is invalid."))
            frames = await client.ask("Hello?")
        assert server.provider.requests[0].headers["authorization"] == "Bearer sk-very-secret"
        assert "sk-very-secret" not in json.dumps(frames)
        assert "is invalid" in frames[-1]["message"]


async def test_a_thinking_level_is_passed_on(server, client):
    await server.change_agent(thinking_level="high")
    server.provider.then(say("Ok."))
    await client.ask("Hello?")
    assert server.provider.last["reasoning_effort"] == "high"


# ── What a provider can answer ──────────────────────────────────────────────────────────────────────────────────────


async def test_several_calls_of_one_turn_are_made_one_after_the_other(server, client):
    server.provider.then(
        calls(*write("a.txt", "first", id="c1"), *call(*READ, index=1, id="c2"), *write("b.txt", index=2, id="c3")),
        say("Done."),
    )
    frames = await client.ask("Do all three")
    calling = [(frame["type"], frame["call_id"]) for frame in frames if frame["type"] in ("tool_started", "tool_call")]
    assert calling == [(kind, number) for number in ("c1", "c2", "c3") for kind in ("tool_started", "tool_call")]
    assert "first" in of_kind(frames, "tool_call")[1]["result"]
    assert frames[-1]["tool_call_count"] == 3


@pytest.mark.parametrize("arguments", ['{"path": "a.t', "[1, 2]", '"a.txt"', "nonsense"])
async def test_arguments_that_are_no_object_are_the_models_to_correct(server, session, client, arguments):
    server.provider.then(calls(*call("read_file", arguments, id="c1")), say("Sorry."))
    frames = await client.ask("Read")
    assert frames[-1]["type"] == "stream_end", frames[-1]
    [called] = of_kind(frames, "tool_call")
    assert (called["success"], called["metadata"]["code"]) == (False, "bad_arguments")
    assert server.provider.last["messages"][-1]["content"] == called["result"]


@pytest.mark.parametrize("answer", [refuse(503, "Overloaded"), refuse(500, "Oops"), hang_up])
async def test_a_fault_that_may_pass_is_shown_as_waiting(settings, answer):
    # Its own server, without a kept connection: one that is closed before the answer is tried again at once.
    async with running_server(settings) as server, server.watch(await server.session()) as client:
        server.provider.then(answer, answer, say("Now."))
        frames = await client.ask("Hello?")
    assert kinds(frames) == ["stream_start", "waiting", "stream_delta", "stream_end"]
    assert [frame["retry_in"] for frame in of_kind(frames, "waiting")] == [0.0, 0.0]  # hundredths of a second
    assert_consecutive(frames)


async def test_a_page_instead_of_an_answer_is_an_error_in_the_run(server, client):
    server.provider.then(reply(200, b"<html>Welcome to the hotel's wifi</html>", {"Content-Type": "text/html"}))
    frames = await client.ask("Hello?")
    assert frames[-1]["type"] == "error"


async def test_half_a_tool_call_is_not_made(server, session, client):
    server.provider.then(stream(*call("write_file", '{"path": "a.txt", "content": "x"}'), finish=None, done=False))
    frames = await client.ask("Hello?")
    assert kinds(frames) == ["stream_start", "error"]
    assert list((await server.folder()).rglob("a.txt")) == []


async def test_an_error_in_the_middle_of_a_stream_is_told_in_the_providers_words(server, client):
    server.provider.then(stream(*text("Well"), {"error": {"message": "Out of memory."}}, finish=None, done=False))
    frames = await client.ask("Hello?")
    assert "Out of memory." in frames[-1]["message"]


async def test_an_empty_answer_ends_the_run_with_a_note(server, session, client):
    server.provider.then(stream(chunk({"role": "assistant"})), say("Here."))
    frames = await client.ask("Hello?")
    assert kinds(frames) == ["stream_start", "stream_end"]
    assert frames[-1]["content"] == "I ended without an answer."
    run = await server.run(frames[0]["run_id"])
    assert (run["status"], run["reason"]) == ("success", "empty_answer")
    assert (await client.ask("Hello?"))[-1]["content"] == "Here."


async def test_a_run_has_a_limit_of_time(server, session, client):
    await server.change_agent(run_limit_seconds=1)
    server.provider.then(stream(*text("Well"), 30.0))
    frames = await client.ask("Hello?")
    assert frames[-1]["type"] == "error"
    assert frames[-1]["code"] == "time_limit"
    [run] = await server.runs_of(session)
    assert (run["status"], run["reason"]) == ("failed", "time_limit")


# ── Missing models ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_model_that_cannot_be_used_is_an_error_in_the_run_and_never_another_model(
    server, session, client, monkeypatch
):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    model = "anthropic:claude-sonnet-4-5"
    await server.change_agent(model=model)
    frames = await client.ask("Hello?")
    assert kinds(frames) == ["stream_start", "error"]
    assert frames[-1]["code"] == "model_key_missing"
    assert repr(model) in frames[-1]["message"]
    assert server.provider.requests == []
    await server.change_agent(model=None)
    server.provider.then(say("Here."))
    assert (await client.ask("Hello?"))[-1]["content"] == "Here."


@pytest.mark.parametrize(
    "model", [pytest.param("nobody:knows", id="no provider"), pytest.param("gpt-4o", id="no prefix")]
)
async def test_a_model_that_there_is_not_is_refused_before_any_run_and_the_agent_keeps_its_own(server, client, model):
    [agent] = (await server.call("GET", "/agents"))["agents"]
    async with server.client(server.token) as rest:
        refused = await rest.patch(f"/agents/{agent['id']}", json={"model": model})
    error = refused.json()["error"]
    assert (refused.status_code, error["code"], error["field"]) == (400, "no_such_model", "model")
    assert repr(model) in error["message"]
    [kept] = (await server.call("GET", "/agents"))["agents"]
    assert kept["model"] == agent["model"]
    server.provider.then(say("Here."))
    assert (await client.ask("Hello?"))[-1]["content"] == "Here."


# ── Limits ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_limit_of_model_calls_ends_the_run_well_with_a_note(server, session, client):
    await server.change_agent(max_iterations=2)
    server.provider.then(calls(*write("a.txt", id="c1")), calls(*write("b.txt", id="c2")))
    frames = await client.ask("Go on and on")
    assert frames[-1]["type"] == "stream_end"
    assert "limit of model calls" in frames[-1]["content"]
    last = (await server.messages(session))[frames[-1]["message_index"]]
    assert (last["note"], last["content"]) == ("iteration_limit", frames[-1]["content"])
    [run] = await server.runs_of(session)
    assert (run["status"], run["reason"]) == ("success", "iteration_limit")


async def test_the_same_call_with_the_same_result_three_times_breaks_the_run_off(server, session, client):
    server.provider.then(*[calls(*call(*READ, id=f"c{number}")) for number in range(3)])
    frames = await client.ask("Read it")
    assert len(of_kind(frames, "tool_call")) == 3
    assert "same call" in frames[-1]["content"]
    [run] = await server.runs_of(session)
    assert (run["status"], run["reason"]) == ("success", "repeated_calls")


async def test_the_same_call_with_other_calls_in_between_does_not_break_the_run_off(server, client):
    server.provider.then(
        calls(*call(*READ, id="c1")),
        calls(*call(*READ, id="c2")),
        calls(*call("list_files", "{}", id="c3")),
        calls(*call(*READ, id="c4")),
        say("Not there."),
    )
    assert (await client.ask("Read it"))[-1]["content"] == "Not there."


async def test_what_a_run_has_used_can_be_asked_for(server, client):
    server.provider.then(
        stream(*write("a.txt"), usage(50, 5), finish="tool_calls"),
        stream(*text("Done."), usage(70, 3)),
    )
    frames = await client.ask("Write")
    assert (await server.run(frames[0]["run_id"]))["usage"] == {
        "model": "openai-chat:test",
        "input_tokens": 120,
        "output_tokens": 8,
        "cost": None,
        "model_calls": 2,
        "tool_calls": 1,
    }


# ── Titles ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def title_of(server, session):
    return (await server.call("GET", f"/sessions/{session}"))["title"]


async def test_a_new_session_gets_a_title_from_the_model(server):
    session = await server.session(title="")
    server.provider.then(say("Paris."), say('"Capital of France."'))
    async with server.watch(session) as client:
        await client.ask("What is the capital of France?")
        assert await eventually(lambda: title_of(server, session)) == "Capital of France"
        asked = json.dumps(server.provider.last["messages"])
        assert "What is the capital of France?" in asked
        assert "Paris." in asked
        server.provider.then(say("Berlin."))
        await client.ask("And of Germany?")
        await client.nothing_more()
    assert len(server.provider.requests) == 3  # no second title


async def test_finding_a_title_never_makes_the_session_busy(server):
    session = await server.session(title="")
    naming = Tap()
    server.provider.then(say("One."), naming)
    async with server.watch(session) as client:
        await client.ask("First")
        await asyncio.wait_for(naming.is_asked.wait(), 5)
        assert (await server.call("GET", f"/sessions/{session}"))["is_running"] is False
        server.provider.then(say("Two."), say("Another name"))
        assert (await client.ask("Second"))[-1]["content"] == "Two."
        naming.say("A name")
        naming.end()
        assert await eventually(lambda: title_of(server, session)) in ("A name", "Another name")
        await eventually(lambda: _has_asked(server, 4))


async def _has_asked(server, times):
    return len(server.provider.requests) == times


async def test_a_session_whose_title_cannot_be_found_is_named_by_its_first_words(server):
    session = await server.session(title="")
    server.provider.then(say("One."), refuse(500, "No."))
    async with server.watch(session) as client:
        await client.ask("Tell me something about " + "many " * 30 + "things")
    title = await eventually(lambda: title_of(server, session))
    assert title.startswith("Tell me something about many")
    assert len(title) <= 60


async def test_a_name_that_a_person_gave_is_not_replaced(server, session, client):
    server.provider.then(say("One."))
    await client.ask("First")
    await client.nothing_more()
    assert (await title_of(server, session)).startswith("Titled")
    assert len(server.provider.requests) == 1


async def test_a_failed_run_asks_for_no_title(server):
    session = await server.session(title="")
    server.provider.then(refuse(400, "No."))
    async with server.watch(session) as client:
        await client.ask("First")
        await client.nothing_more()
    assert await title_of(server, session) == ""
