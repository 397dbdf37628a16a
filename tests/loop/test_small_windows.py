"""A model with a small context window is shown fewer tools, gets the others when it asks, and keeps all its rights."""

import json

import pytest

from live_server import of_kind, running_server
from openai_server import call, calls, say, stream, text


@pytest.fixture(scope="module")
async def shared_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    settings = {"data_dir": folder / "data", "config_dir": folder / "config", "store_encryption": False}
    async with running_server(settings, context_window=8_192) as server:
        yield server


def shown(server):
    """Return the names of the tools in the last request."""
    return [tool["function"]["name"] for tool in server.provider.last["tools"]]


async def test_hello_sends_a_fraction_of_the_bytes_and_every_tool_is_named(server, client):
    server.provider.then(say("Hello!"))
    await client.ask("Hello")
    body = server.provider.last
    assert len(json.dumps(body)) < 7_000
    assert len(body["tools"]) < 8
    assert shown(server)[-1] == "more_tools"
    [agent] = (await server.call("GET", "/agents"))["agents"]
    tools = (await server.call("GET", "/tools"))["tools"]
    own = [tool["name"] for tool in tools if tool["toolset"] in agent["toolsets"] and tool["toolset"] != "subagents"]
    assert len(own) > 25
    assert [name for name in own if name not in json.dumps(body["tools"])] == []


async def test_tools_that_the_model_asks_for_are_shown_from_then_on_also_in_the_next_run(server, client):
    asks = calls(*call("more_tools", json.dumps({"names": ["db_query", "db_insert"]}), id="m1"))
    server.provider.then(asks, say("Fine."), say("Again."))
    frames = await client.ask("Look into your data")
    [made] = of_kind(frames, "tool_call")
    assert made["success"]
    assert {"db_query", "db_insert", "more_tools"} <= set(shown(server))
    assert "db_migrate" not in shown(server)
    await client.ask("And now?")
    assert {"db_query", "db_insert"} <= set(shown(server))


async def test_a_toolset_that_is_too_large_is_listed_tool_by_tool(server, client):
    server.provider.then(calls(*call("more_tools", '{"names": "database"}', id="m1")), say("Fine."))
    [made] = of_kind(await client.ask("Look into your data"), "tool_call")
    assert "- db_query: " in made["result"]
    assert "db_query" not in shown(server)


async def test_a_folded_tool_that_is_called_by_its_name_is_called_and_shown_afterwards(server, client):
    server.provider.then(calls(*call("db_schema", "{}", id="c1")), say("Fine."))
    [made] = of_kind(await client.ask("Look"), "tool_call")
    assert made["success"]
    assert "db_schema" in shown(server)


async def test_a_tool_that_a_message_names_is_shown_at_once(server, client):
    server.provider.then(say("Fine."))
    await client.ask("Count the rows with db_query, and book a schedule_recall.")
    assert {"db_query", "schedule_recall"} <= set(shown(server))


async def test_an_unknown_name_is_answered_with_those_there_are(server, client):
    server.provider.then(calls(*call("more_tools", '{"names": ["mail"]}', id="m1")), say("Fine."))
    [made] = of_kind(await client.ask("Send a mail"), "tool_call")
    assert (made["success"], made["metadata"]["code"]) == (False, "bad_arguments")
    assert "'mail'" in made["result"]
    assert "database" in made["result"]


async def test_a_wake_that_is_booked_with_folded_tools_keeps_the_right_to_all_of_them(server, session, client):
    brief = {"call_type": "once", "when": "1 hour", "additional_context_message": "Count rows with db_query."}
    server.provider.then(calls(*call("schedule_recall", json.dumps(brief), id="c1")), say("Booked."))
    [made] = of_kind(await client.ask("Remind yourself"), "tool_call")
    assert made["success"], made["result"]
    wake = await server.node.store.read(lambda tx: tx.wakes.find(made["metadata"]["recall_id"]))
    assert "db_query" in wake.tools
    assert "db_migrate" in wake.tools
    assert "more_tools" not in wake.tools


async def test_an_output_limit_is_always_sent_and_fits_into_the_window(server, client):
    server.provider.then(say("Hello!"))
    await client.ask("Hello")
    assert server.provider.last["max_tokens"] == 2_048


async def test_an_answer_that_ends_at_the_limit_is_kept_and_said_to_be_incomplete(server, session, client):
    server.provider.then(stream(*text("Once upon a ti"), finish="length"))
    frames = await client.ask("Tell me a story")
    run = await server.run(frames[0]["run_id"])
    assert (run["status"], run["note"]) == ("success", "output_limit")
    cut = [message for message in await server.messages(session) if message["is_cut_off"]]
    assert [message["content"] for message in cut] == ["Once upon a ti"]


async def test_a_call_that_ends_at_the_limit_is_answered_with_the_reason(server, client):
    server.provider.then(
        stream(*call("write_file", '{"path": "a.txt", "content": "xxx', id="c1"), finish="length"), say("Shorter.")
    )
    [made] = of_kind(await client.ask("Write"), "tool_call")
    assert not made["success"]
    assert "output limit" in made["result"]


async def test_text_without_an_end_is_cut_off_and_shown_twice(server, session, client):
    again = "I am sorry, I do not know that. "
    server.provider.then(stream(*text("Well. ", *[again] * 2_000), finish=None, done=False))
    frames = await client.ask("Who am I?")
    run = await server.run(frames[0]["run_id"])
    assert (run["status"], run["note"]) == ("success", "repeated_text")
    assert "repeating the same text" in frames[-1]["content"]
    [cut] = [message for message in await server.messages(session) if message["is_cut_off"]]
    assert cut["content"] == f"Well. {again * 2}".rstrip() + " …"
