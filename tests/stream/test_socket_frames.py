"""Every frame that a run can send, with exactly its fields. The client validates them against the schema."""

from datetime import UTC, datetime

import pytest

from live_server import Patient, Tap, assert_consecutive, eventually, kinds, of_kind, running_server, text_of
from openai_server import break_off, call, calls, improvise, refuse, say, stream, text, thinking, usage

STORED = {"type", "seq", "run_id"}
WRITE = ("write_file", '{"path": "a.txt", "content": "hello"}')


@pytest.fixture(scope="module")
async def shared_server(shared_settings):
    async with running_server(shared_settings, patient=Patient(retries=0)) as server:
        yield server


def fields(frame):
    return set(frame) - STORED


async def test_an_answer_is_a_start_deltas_and_an_end(server, session, client):
    server.provider.then(stream(*text("Hel", "lo"), usage(120, 7)))
    frames = await client.ask("Hello?")
    start, *deltas, end = frames
    assert set(start) == STORED
    assert start["type"] == "stream_start"
    assert all(set(delta) == STORED | {"delta"} and delta["type"] == "stream_delta" for delta in deltas)
    assert text_of(deltas) == "Hello"
    [run] = await server.runs_of(session)
    assert {frame["run_id"] for frame in frames} == {run["id"]}
    assert_consecutive(frames, first=1)
    elapsed = end.pop("elapsed_seconds")
    assert 0 < elapsed < 10
    assert end == {
        "type": "stream_end",
        "content": "Hello",
        "context_tokens": 127,
        "max_context_tokens": 128_000,
        "tool_call_count": 0,
        "token_count": 7,
        "message_index": 1,
        "run_id": run["id"],
        "seq": len(frames),
    }


async def test_the_end_points_at_the_answer_in_the_history_and_counts_the_whole_run(server, session, client):
    server.provider.then(say("First."))
    await client.ask("One")
    server.provider.then(
        stream(*call(*WRITE, id="c1"), usage(50, 5), finish="tool_calls"),
        stream(*text("Second."), usage(70, 3)),
    )
    end = (await client.ask("Two"))[-1]
    messages = await server.messages(session)
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant", "tool", "assistant"]
    assert messages[end["message_index"]]["content"] == "Second."
    assert messages[end["message_index"]]["index"] == end["message_index"] == 5
    assert (end["tool_call_count"], end["token_count"], end["context_tokens"]) == (1, 8, 73)


async def test_reasoning_comes_as_deltas_and_ends_before_the_text(server, session, client):
    server.provider.then(stream(*thinking("Let me ", "see."), *text("Yes."), usage(1, 1)))
    frames = await client.ask("Well?")
    assert kinds(frames) == ["stream_start", "thinking_delta", "thinking_end", "stream_delta", "stream_end"]
    assert text_of(frames, "thinking_delta") == "Let me see."
    assert all(fields(frame) == {"delta"} for frame in of_kind(frames, "thinking_delta"))
    [end] = of_kind(frames, "thinking_end")
    assert fields(end) == set()
    assert (await server.messages(session))[1]["thinking"] == "Let me see."


async def test_a_turn_that_only_thinks_ends_its_thinking(server, client):
    server.provider.then(stream(*thinking("Nothing to say."), usage(1, 1)))
    frames = await client.ask("Well?")
    assert kinds(frames) == ["stream_start", "thinking_delta", "thinking_end", "stream_end"]
    assert frames[-1]["content"] == "I ended without an answer."


async def test_a_tool_call_that_works_is_shown_before_and_after(server, client):
    server.provider.then(calls(*call(*WRITE, id="c1")), say("Done."))
    frames = await client.ask("Write")
    [started], [called] = of_kind(frames, "tool_started"), of_kind(frames, "tool_call")
    args = {"path": "a.txt", "content": "hello"}
    assert {name: started[name] for name in fields(started)} == {
        "tool": "write_file",
        "args": args,
        "is_subagent": False,
        "call_id": "c1",
    }
    assert fields(called) == {"tool", "args", "result", "success", "is_subagent", "metadata", "call_id"}
    assert (called["tool"], called["args"], called["call_id"]) == ("write_file", args, "c1")
    assert (called["success"], called["is_subagent"]) == (True, False)
    assert "a.txt" in called["result"]
    assert isinstance(called["metadata"], dict)
    assert started["seq"] + 1 == called["seq"]


async def test_a_tool_that_refuses_shows_as_a_failed_call_with_its_code(server, client):
    server.provider.then(calls(*call("read_file", '{"path": "../../etc/passwd"}', id="c1")), say("I may not."))
    frames = await client.ask("Read it")
    [called] = of_kind(frames, "tool_call")
    assert called["success"] is False
    assert called["metadata"] == {"code": "path_outside_workspace"}
    assert "outside your workspace" in called["result"]
    assert frames[-1]["type"] == "stream_end"
    assert frames[-1]["tool_call_count"] == 1


async def test_a_run_that_fails_ends_with_an_error(server, session, client):
    server.provider.then(refuse(400, "The context is too long."))
    start, error = await client.ask("Hello?")
    assert start["type"] == "stream_start"
    assert set(error) == STORED | {"message", "code"}
    assert error["type"] == "error"
    assert error["code"] == "model_failed"
    assert "The context is too long." in error["message"]
    run = await server.run(error["run_id"])
    assert (run["status"], run["reason"], run["error"]) == ("failed", "model_failed", error["message"])


async def test_a_recall_that_is_booked_is_told_with_the_fields_of_the_protocol(server, session, client):
    asked = '{"call_type": "once", "when": "2h", "additional_context_message": "Read a.txt with read_file."}'
    server.provider.then(calls(*call("schedule_recall", asked)), say("Booked."))
    frames = await client.ask("Wake up in two hours")
    [update] = of_kind(frames, "recall_update")
    assert fields(update) == {"session_id", "recall_id", "call_type", "trigger_at", "status", "action"}
    recall = (await server.call("GET", f"/sessions/{session}"))["recall"]
    assert update["recall_id"] == recall["id"]
    assert update["session_id"] == session
    assert (update["call_type"], update["status"], update["action"]) == ("once", "pending", "scheduled")
    assert datetime.fromisoformat(update["trigger_at"]) == datetime.fromisoformat(recall["trigger_at"])
    assert datetime.fromisoformat(update["trigger_at"]).utcoffset() == UTC.utcoffset(None)


async def test_a_recall_that_fires_says_so_in_its_own_run(server, session, client):
    server.provider.then(say("I am awake."))
    wake = await server.book(session, "Look at a.txt", comment="A look")
    frames = await client.until("stream_end")
    booked, update = of_kind(frames, "recall_update")
    assert (booked["recall_id"], booked["status"], booked["action"]) == (wake.id, "pending", "scheduled")
    assert (update["recall_id"], update["status"], update["action"]) == (wake.id, "fired", "fired")
    assert update["run_id"] == of_kind(frames, "stream_start")[0]["run_id"]


async def test_silence_is_filled_with_heartbeats_that_carry_nothing(client):
    assert await client.next(3, is_heartbeat_wanted=True) == {"type": "heartbeat"}
    assert await client.next(3, is_heartbeat_wanted=True) == {"type": "heartbeat"}


async def test_heartbeats_come_during_a_long_silent_tool_call(server, session, client):
    await server.change_agent(toolsets=["shell"])
    server.provider.then(calls(*call("run_command", '{"command": "sleep 1.6"}')), say("Done."))
    await client.say("Sleep")
    await client.until("tool_started")
    assert (await client.next(is_heartbeat_wanted=True))["type"] == "heartbeat"
    await client.until("stream_end")


async def test_what_is_said_before_a_tool_call_is_shown_and_kept(server, session, client):
    server.provider.then(calls(*text("Let me write it."), *call(*WRITE)), say("Done."))
    frames = await client.ask("Write")
    assert kinds(frames) == [
        "stream_start",
        "stream_delta",
        "tool_started",
        "tool_call",
        "stream_delta",
        "stream_end",
    ]
    assert frames[-1]["content"] == "Done."
    first = (await server.messages(session))[1]
    assert first["content"] == "Let me write it."
    assert first["tool_calls"] == [
        {"call_id": "call_1", "tool": "write_file", "args": {"path": "a.txt", "content": "hello"}}
    ]


async def test_an_answer_that_breaks_off_ends_with_an_error_and_keeps_what_people_have_read(server, session, client):
    server.provider.then(break_off(*text("Half a ", "sentence")))
    frames = await client.ask("Go on")
    assert kinds(frames) == ["stream_start", "stream_delta", "error"]
    assert frames[-1]["code"] == "model_cut_off"
    last = (await server.messages(session))[-1]
    assert (last["role"], last["content"], last["is_cut_off"]) == ("assistant", text_of(frames), True)


async def test_every_kind_of_frame_a_run_says_can_be_read_again_over_http(server, session, client):
    server.provider.then(calls(*thinking("Hm."), *call(*WRITE)), say("Done."))
    frames = await client.ask("Write")
    again = await server.call("GET", f"/runs/{frames[0]['run_id']}/events")
    assert again["events"] == frames
    some = await server.call("GET", f"/runs/{frames[0]['run_id']}/events", params={"after": 2})
    assert some["events"] == frames[2:]


@pytest.mark.parametrize(
    "words",
    [
        pytest.param('A "quote", a back\\slash, a line\nbreak, \u2028, a tab\t, \x1f and </script>', id="control"),
        pytest.param("日本語, 🦜", id="far"),
    ],
)
async def test_every_kind_of_character_arrives_as_it_was_said_and_is_kept(server, session, client, words):
    server.provider.then(say(words))
    frames = await client.ask("Say it")
    assert text_of(frames) == words
    assert frames[-1]["type"] == "stream_end"
    assert frames[-1]["content"] == words
    assert (await server.messages(session))[-1]["content"] == words


async def test_a_nul_that_a_model_says_becomes_a_mark_that_every_database_can_keep(server, session, client):
    server.provider.then(stream(*thinking("a\x00b"), *text("before\x00after")))
    frames = await client.ask("Say it")
    assert text_of(frames, "thinking_delta") == "a\ufffdb"
    assert text_of(frames) == frames[-1]["content"] == "before\ufffdafter"
    assert (await server.messages(session))[-1]["content"] == "before\ufffdafter"


async def test_a_nul_in_the_result_of_a_tool_does_not_end_the_run(server, session, client):
    await server.change_agent(toolsets=["shell"])
    server.provider.then(calls(*call("run_command", '{"command": "printf \'a\\\\000b\'"}')), say("Seen."))
    frames = await client.ask("Look")
    assert frames[-1]["type"] == "stream_end"
    [called] = of_kind(frames, "tool_call")
    assert "\x00" not in called["result"]
    assert (await server.messages(session))[2]["content"] == called["result"]


async def test_the_session_is_shown_as_running_while_it_is(server, session, client):
    tap = Tap()
    server.provider.then(tap)
    await client.say("Go on")
    await tap.is_asked.wait()
    assert (await server.call("GET", f"/sessions/{session}"))["is_running"] is True
    tap.end()
    await client.until("stream_end")
    assert (await server.call("GET", f"/sessions/{session}"))["is_running"] is False


async def test_an_improvising_provider_can_be_talked_to(backend_settings):
    """The provider that crash tests and benches use says what its documentation says."""
    async with running_server(backend_settings, always=improvise) as server:
        session = await server.session()
        async with server.watch(session) as client:
            assert (await client.ask("stream 5"))[-1]["content"] == "word " * 5
            assert (await client.ask("think so"))[-1]["content"] == "so"
            called = await client.ask('call write_file {"path": "a.txt", "content": "x"}')
            assert called[-1]["content"].startswith("The tool said: ")
            assert (await client.ask("half way"))[-1]["code"] == "model_cut_off"
        await eventually(lambda: server.messages(session))
