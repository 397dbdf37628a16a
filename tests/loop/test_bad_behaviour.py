"""A model that misbehaves: each run ends within limits, with a readable error, and the session stays usable."""

import asyncio
import json

import pytest

from live_server import of_kind, text_of
from openai_server import call, calls, chunk, event, say, stream, text, thinking, varied


async def check_usable(server, session, client):
    """The next message is answered, and what the provider is sent of the past is in order."""
    server.provider.always = None
    server.provider.then(say("Still here."))
    assert (await client.ask("Are you there?"))[-1]["content"] == "Still here."
    assert (await server.call("GET", f"/sessions/{session}"))["is_running"] is False


async def ending(server, frames):
    run = await server.run(frames[0]["run_id"])
    assert frames[-1]["type"] == "stream_end", frames[-1]
    return run["status"], run["reason"]


async def test_unknown_tools_again_and_again(server, session, client):
    server.provider.then(*[calls(*call(f"do_{number}", "{}", id=f"c{number}")) for number in range(10)])
    frames = await client.ask("Go")
    assert await ending(server, frames) == ("success", "bad_calls")
    assert "10 tool calls in a row" in frames[-1]["content"]
    assert all("There is no tool" in called["result"] for called in of_kind(frames, "tool_call"))
    await check_usable(server, session, client)


@pytest.mark.parametrize("depth", [60, 260, 400, 950, 20_000])
async def test_arguments_nested_too_deep_fail_the_call_and_not_the_run(server, session, client, depth):
    nested = f'{{"path": {"[" * depth}{"]" * depth}}}'
    server.provider.then(calls(*call("read_file", nested)), say("I see."))
    frames = await client.ask("Go")
    assert await ending(server, frames) == ("success", None)
    [called] = of_kind(frames, "tool_call")
    assert (called["success"], called["metadata"]["code"]) == (False, "bad_arguments")
    if depth > 60:
        assert "nested" in called["result"]
    await check_usable(server, session, client)


@pytest.mark.parametrize("arguments", ['{"path": "a{}.txt', '{{"pfad": "a{}.txt"}}'])
async def test_malformed_arguments_ten_times_in_a_row(server, session, client, arguments):
    broken = [arguments.replace("{}", str(number)).replace("{{", "{").replace("}}", "}") for number in range(10)]
    server.provider.then(*[calls(*call("read_file", each, id=f"c{n}")) for n, each in enumerate(broken)])
    frames = await client.ask("Go")
    assert await ending(server, frames) == ("success", "bad_calls")
    await check_usable(server, session, client)


async def test_one_good_call_among_bad_ones_is_enough_to_go_on(server, session, client):
    bad = [calls(*call(f"do_{number}", "{}", id=f"c{number}")) for number in range(9)]
    server.provider.then(*bad, calls(*call("list_files", "{}", id="good")), *bad, say("Done."))
    assert (await client.ask("Go"))[-1]["content"] == "Done."


async def test_one_call_repeated_in_one_answer(server, session, client):
    many = [piece for number in range(50) for piece in call("list_files", "{}", id=f"c{number}", index=number)]
    server.provider.then(calls(*many))
    frames = await client.ask("Go")
    assert await ending(server, frames) == ("success", "repeated_calls")
    assert len(of_kind(frames, "tool_call")) == 3
    await check_usable(server, session, client)


async def test_reading_stops_at_the_first_call_too_many(server, session, client):
    many = [piece for number in range(101) for piece in call("list_files", "{}", id=f"c{number}", index=number)]
    server.provider.then(stream(*text("Now all of it."), *many, 3600.0))  # it would go on for an hour
    frames = await client.ask("Go")
    assert await ending(server, frames) == ("success", "too_many_calls")
    assert of_kind(frames, "tool_call") == []
    assert "more than 100 tool calls" in frames[-1]["content"]
    said = (await server.call("GET", f"/sessions/{session}"))["messages"]
    assert [message["content"] for message in said if message["role"] == "assistant"] == [
        "Now all of it.",
        frames[-1]["content"],
    ]
    run = await server.run(frames[0]["run_id"])
    assert run["usage"]["model_calls"] == 1
    assert run["usage"]["output_tokens"] > 0
    await check_usable(server, session, client)


@pytest.mark.parametrize("name", ["list_files", ""])
async def test_a_flood_of_calls_in_one_piece_is_not_collected(server, session, client, name):
    function = {"name": name, "arguments": "{}"}
    many = [{"index": n, "id": f"c{n}", "type": "function", "function": function} for n in range(50_000)]
    server.provider.then(stream(chunk({"tool_calls": many}), finish="tool_calls"))
    async with asyncio.timeout(20):  # it took minutes when each was compared with all before it
        frames = await client.ask("Go")
    if name:
        assert await ending(server, frames) == ("success", "too_many_calls")
    else:
        assert "without a name" in frames[-1]["message"]
    await check_usable(server, session, client)


@pytest.mark.parametrize("piece", [1_000, 10_000_000])
async def test_a_flood_of_text_is_cut_off(server, session, client, piece):
    whole = varied(10_000_000)
    count = len(whole) // piece

    async def flood(exchange):
        await exchange.begin()
        for number in range(count):
            await exchange.send(event(chunk({"content": whole[number * piece : (number + 1) * piece]})))
        await exchange.send(event(chunk(finish="stop")) + b"data: [DONE]\n\n")
        await exchange.end()

    server.provider.then(flood)
    await client.say("Go")
    frames = await client.until("stream_end", "error", "session_sync", seconds=30)
    if frames[-1]["type"] == "session_sync":  # so much at once that this client has to sync again
        frames += await client.until("stream_end", "error", seconds=30)
    run = (await server.runs_of(session))[0]
    assert (run["status"], run["reason"]) == ("success", "answer_too_long")
    assert "too long" in frames[-1]["content"]
    saved = await server.messages(session)
    assert len(saved[1]["content"]) == 1_000_000
    assert saved[1]["is_cut_off"] is True
    used = (await server.run(run["id"]))["usage"]
    assert used["output_tokens"] > 250_000  # though the provider never came to say so
    await check_usable(server, session, client)
    assert len(json.dumps(server.provider.last["messages"])) < 3 * 128_000


async def test_a_flood_of_thoughts_is_cut_off(server, session, client):
    server.provider.then(stream(*thinking(*[varied(120_000)] * 12), *text("Never said.")))
    frames = await client.ask("Go")
    assert await ending(server, frames) == ("success", "answer_too_long")
    assert len(text_of(frames, "thinking_delta")) == 1_000_000
    await check_usable(server, session, client)


async def test_a_flood_of_arguments_is_cut_off_and_nothing_is_called(server, session, client):
    pieces = ['{"path": "a.txt", "content": "', *["x" * 100_000] * 15, '"}']
    server.provider.then(calls(*call("write_file", *pieces)))
    frames = await client.ask("Go")
    assert await ending(server, frames) == ("success", "answer_too_long")
    assert of_kind(frames, "tool_call") == []
    await check_usable(server, session, client)
