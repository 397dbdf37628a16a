"""The chat completions client with a scripted provider on a real socket."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import (
    BinaryContent,
    DocumentUrl,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

import openai_server
from openai_server import (
    Answer,
    Exchange,
    OpenAIServer,
    break_off,
    call,
    calls,
    chunk,
    event,
    hang,
    hang_up,
    raw,
    refuse,
    reply,
    say,
    stream,
    text,
    thinking,
    usage,
)
from wakeful.core.clock import ManualClock
from wakeful.models.endpoint import Endpoint
from wakeful.models.errors import ModelBusy, ModelCutOff, ModelFailed, UnsupportedContent
from wakeful.models.openai_chat import ModelTimeouts, OpenAIChat

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
HELLO: list[ModelMessage] = [ModelRequest.user_text_prompt("Hello?")]
PLAIN = ModelRequestParameters()
KEY = "sk-very-secret"


@asynccontextmanager
async def provider(
    *script: Answer, patience: ModelTimeouts | None = None, key: str | None = KEY
) -> AsyncIterator[tuple[OpenAIServer, OpenAIChat]]:
    async with OpenAIServer(*script) as server:
        endpoint = Endpoint(server.base_url, key)
        try:
            yield server, OpenAIChat("test-1", endpoint, ManualClock(NOON), patience=patience)
        finally:
            await endpoint.aclose()


async def ask(
    model: OpenAIChat,
    messages: list[ModelMessage] = HELLO,
    settings: ModelSettings | None = None,
    parameters: ModelRequestParameters = PLAIN,
) -> ModelResponse:
    return await model.request(messages, settings, parameters)


def words_of(each: object) -> str:
    """Return the text that an event brings."""
    if isinstance(each, PartStartEvent):
        return each.part.content
    return each.delta.content_delta if isinstance(each, PartDeltaEvent) else ""


async def watch(model: OpenAIChat, shown: list[str]) -> ModelResponse:
    """Note the text of every event and return the whole answer."""
    async with model.request_stream(HELLO, None, PLAIN) as events:
        async for each in events:
            shown += filter(None, [words_of(each)])
    return events.get()


async def answer_to(*script: Answer) -> ModelResponse:
    async with provider(*script) as (_, model):
        return await ask(model)


async def sent(
    messages: list[ModelMessage] = HELLO,
    settings: ModelSettings | None = None,
    parameters: ModelRequestParameters = PLAIN,
) -> dict[str, Any]:
    """Return the body that the provider really got."""
    async with provider(say("Hi")) as (server, model):
        await ask(model, messages, settings, parameters)
        return server.requests[0].body


def arguments_of(response: ModelResponse) -> list[tuple[str, dict[str, Any]]]:
    return [(part.tool_name, part.args_as_dict()) for part in response.parts if isinstance(part, ToolCallPart)]


async def test_text_usage_and_the_reason_to_finish_are_read():
    response = await answer_to(
        stream(*text("Hel", "lo"), usage(12, 2, prompt_tokens_details={"cached_tokens": 5}), finish="length")
    )
    assert response.parts == [TextPart("Hello")]
    assert (response.usage.input_tokens, response.usage.output_tokens, response.usage.cache_read_tokens) == (12, 2, 5)
    assert (response.finish_reason, response.state, response.timestamp) == ("length", "complete", NOON)


async def test_usage_that_was_never_reported_is_marked_as_unknown():
    response = await answer_to(stream(*text("Hi")))
    assert response.usage.unmeasured_requests == 1


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_becomes_thinking_before_the_text(field):
    response = await answer_to(stream(*thinking("Let ", "me see", field=field), *text("Yes")))
    assert [(type(part), part.content) for part in response.parts] == [(ThinkingPart, "Let me see"), (TextPart, "Yes")]
    assert response.parts[0].id == field


async def test_thinking_sent_under_both_names_is_read_once():
    response = await answer_to(stream(chunk({"reasoning_content": "Hm", "reasoning": "Hm"}), *text("Yes")))
    assert response.parts[0].content == "Hm"


async def test_several_streamed_tool_calls_are_told_apart_by_index():
    pieces = [
        *call("read_file", '{"pa', 'th": "a"}', id="call_a"),
        *call("list_files", "{}", index=1, id="call_b"),
        chunk({"tool_calls": [{"index": 1, "function": {"arguments": ""}}]}),
    ]
    response = await answer_to(calls(*pieces))
    assert arguments_of(response) == [("read_file", {"path": "a"}), ("list_files", {})]
    assert [part.tool_call_id for part in response.parts] == ["call_a", "call_b"]
    assert response.finish_reason == "tool_call"


def whole(name: str, arguments: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}} | fields


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        pytest.param(
            [[whole("f", '{"a":1}', index=0, id="x"), whole("g", '{"b":2}', index=1, id="y")]],
            [("f", {"a": 1}), ("g", {"b": 2})],
            id="whole calls in one chunk",
        ),
        pytest.param(
            [[whole("f", '{"a":1}', index=0, id="x")], [whole("f", '{"a":2}', index=0, id="y")]],
            [("f", {"a": 1}), ("f", {"a": 2})],
            id="whole calls that all claim index 0",
        ),
        pytest.param(
            [[whole("f", '{"a":1}', index=0)], [whole("f", '{"a":2}', index=0)]],
            [("f", {"a": 1}), ("f", {"a": 2})],
            id="whole calls at index 0 without ids",
        ),
        pytest.param(
            [[whole("f", '{"a":1}')], [whole("g", '{"b":2}')]],
            [("f", {"a": 1}), ("g", {"b": 2})],
            id="no index and no id",
        ),
        pytest.param(
            [[whole("f", '{"a"', index=0, id="x")], [whole("f", ":1}", index=0, id="x")]],
            [("f", {"a": 1})],
            id="the name and id are repeated",
        ),
        pytest.param(
            [[whole("f", '{"a"', index=0)], [whole("f", ":1}", index=0)]],
            [("f", {"a": 1})],
            id="the name is repeated without an id",
        ),
        pytest.param(
            [[{"index": 0, "id": "x"}], [whole("f", '{"a":1}', index=0)]],
            [("f", {"a": 1})],
            id="the id comes before the name",
        ),
        pytest.param(
            [[whole("", '{"a"', index=0, id="x")], [whole("f", ":1}", index=0)]],
            [("f", {"a": 1})],
            id="arguments come before the name",
        ),
        pytest.param([[whole("f", {"a": 1}, index=0)]], [("f", {"a": 1})], id="arguments as an object"),
        pytest.param(
            [[whole("f", "", index=0, id="x")], [{"index": 0, "id": "other", "function": {"arguments": '{"a":1}'}}]],
            [("f", {"a": 1})],
            id="a new id with every piece",
        ),
    ],
)
async def test_tool_calls_are_understood_as_different_servers_stream_them(pieces, expected):
    response = await answer_to(calls(*[chunk({"tool_calls": piece}) for piece in pieces]))
    assert arguments_of(response) == expected
    assert len({part.tool_call_id for part in response.parts}) == len(expected)


async def test_two_calls_with_one_id_get_ids_of_their_own():
    response = await answer_to(calls(*call("f", "{}", id="same"), *call("g", "{}", index=1, id="same")))
    assert len({part.tool_call_id for part in response.parts}) == 2


async def test_a_tool_call_without_a_name_is_an_error():
    with pytest.raises(ModelCutOff, match="without a name"):
        await answer_to(calls(*call("", '{"a":1}')))


async def test_a_server_that_does_not_stream_is_understood():
    message = {"role": "assistant", "content": "Hello", "tool_calls": [whole("f", "{}", id="x")]}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}
    response = await answer_to(reply(200, json.dumps(body).encode(), {"Content-Type": "application/json"}))
    assert response.parts[0] == TextPart("Hello")
    assert arguments_of(response) == [("f", {})]
    assert response.usage.input_tokens == 3


BODY = b"".join(event(each) for each in [*thinking("Grübeln…"), *text("Ja ", "🌙"), chunk(finish="stop"), usage(3, 4)])
BODY = b": hello\r\n\r\n" + BODY.replace(b"\\u00fc", "ü".encode()) + b"data: [DONE]\r\n\r\n"


@settings(max_examples=25, deadline=None)
@given(st.sets(st.integers(min_value=1, max_value=len(BODY) - 1), max_size=8))
def test_an_answer_is_the_same_wherever_the_network_cuts_it(cuts):
    response = asyncio.run(answer_to(raw(BODY, cut=cuts)))
    assert [part.content for part in response.parts] == ["Grübeln…", "Ja 🌙"]
    assert response.usage.output_tokens == 4


async def test_the_first_delta_goes_at_once_and_the_next_ones_together():
    release = asyncio.Event()

    async def answer(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send(event(text("one ")[0]))
        await release.wait()
        for word in ("two ", "three ", "four"):
            await exchange.send(event(text(word)[0]))
        await exchange.send(event(chunk(finish="stop")) + b"data: [DONE]\n\n")
        await exchange.end()

    shown: list[str] = []
    async with provider(answer) as (_, model), model.request_stream(HELLO, None, PLAIN) as events:
        async for each in events:
            shown += filter(None, [words_of(each)])
            release.set()
    assert shown[0] == "one "
    assert "".join(shown) == "one two three four"
    assert len(shown) < 4


async def test_nothing_is_held_back_when_the_provider_then_falls_silent():
    loop = asyncio.get_running_loop()
    came: list[tuple[str, float]] = []

    async def answer(exchange: Exchange) -> None:
        await exchange.begin()
        for word in ("one ", "two"):
            await exchange.send(event(text(word)[0]))
            await asyncio.sleep(0.004)  # the second comes within the window of the first
        await asyncio.sleep(3600)

    async with provider(answer) as (_, model):
        began = loop.time()
        async with asyncio.timeout(1), model.request_stream(HELLO, None, PLAIN) as events:
            async for each in events:
                if word := words_of(each):
                    came.append((word, loop.time() - began))
                if "".join(word for word, _ in came) == "one two":
                    break
    assert [word for word, _ in came] == ["one ", "two"]
    assert came[1][1] - came[0][1] < 0.1  # 20 ms and the slack of a busy machine


async def test_what_came_is_shown_before_the_error_that_follows_it():
    shown: list[str] = []
    async with provider(break_off(*text("one ", "two"))) as (_, model):
        with pytest.raises(ModelCutOff, match="connection broke"):
            await watch(model, shown)
    assert "".join(shown) == "one two"


async def test_a_stream_that_ends_half_way_is_an_error_and_no_answer():
    with pytest.raises(ModelCutOff, match="ended in the middle"):
        await answer_to(stream(*text("Half an ans"), finish=None, done=False))


@pytest.mark.parametrize("ending", [{"finish": None, "done": True}, {"finish": "stop", "done": False}])
async def test_either_sign_of_the_end_is_enough(ending):
    assert (await answer_to(stream(*text("Hello"), **ending))).parts == [TextPart("Hello")]


async def test_a_provider_that_never_answers_is_busy_after_the_first_limit():
    async with provider(hang, patience=ModelTimeouts(first=0.2)) as (_, model):
        with pytest.raises(ModelBusy, match=r"nothing came from http://127\.0\.0\.1:\d+ within 0\.2 s"):
            await ask(model)


async def test_what_we_take_to_send_a_request_is_no_silence_of_the_provider():
    async with provider(say("Hello"), patience=ModelTimeouts(first=0.2)) as (_, model):
        asyncio.get_running_loop().call_soon(time.sleep, 0.4)  # between the wish to ask and the first byte
        assert (await ask(model)).parts == [TextPart("Hello")]


async def test_comments_do_not_count_as_a_first_chunk():
    async with provider(stream(*[b": still working\n\n", 0.01] * 100), patience=ModelTimeouts(first=0.2)) as (_, model):
        with pytest.raises(ModelBusy, match="nothing came"):
            await ask(model)


async def test_a_provider_that_falls_silent_half_way_is_cut_off():
    async with provider(stream(*text("Well"), 3600.0), patience=ModelTimeouts(between=0.03)) as (_, model):
        with pytest.raises(ModelCutOff, match=r"silent for 0\.03 s"):
            await ask(model)


async def test_slow_chunks_within_the_limit_are_an_answer():
    pieces = [piece for each in text("a", "b", "c", "d") for piece in (each, 0.03)]
    async with provider(stream(*pieces), patience=ModelTimeouts(between=0.5)) as (_, model):
        shown: list[str] = []
        assert (await watch(model, shown)).parts == [TextPart("abcd")]
    assert shown[0] == "a"


async def test_an_answer_that_is_whole_does_not_wait_for_a_line_kept_open():
    async with provider(stream(*text("Done"), chunk(finish="stop"), 3600.0), patience=ModelTimeouts(between=0.03)) as (
        _,
        model,
    ):
        assert (await ask(model)).parts == [TextPart("Done")]


async def test_a_rate_limit_is_busy_and_says_for_how_long():
    async with provider(refuse(429, "Slow down, please.", {"Retry-After": "7"})) as (_, model):
        with pytest.raises(ModelBusy, match=r"Slow down, please\. \(HTTP 429\)") as caught:
            await ask(model)
    assert (caught.value.retry_after, caught.value.status) == (7.0, 429)


async def test_a_date_to_retry_at_is_read_against_the_providers_clock():
    headers = {"Date": "Mon, 02 Mar 2026 12:00:00 GMT", "Retry-After": "Mon, 02 Mar 2026 12:00:30 GMT"}
    async with provider(refuse(503, "Later", headers)) as (_, model):
        with pytest.raises(ModelBusy) as caught:
            await ask(model)
    assert caught.value.retry_after == 30.0


async def test_spent_credit_is_final_though_it_comes_as_a_rate_limit():
    body = {"error": {"message": "You exceeded your quota.", "code": "insufficient_quota"}}
    with pytest.raises(ModelFailed, match="exceeded your quota"):
        await answer_to(refuse(429, body))


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        pytest.param(refuse(500, "Oops"), ModelBusy, "Oops", id="500"),
        pytest.param(refuse(400, "No such parameter"), ModelFailed, "No such parameter", id="400"),
        pytest.param(refuse(404, {"detail": "Not Found"}), ModelFailed, "Not Found", id="another shape"),
        pytest.param(reply(502, b"Nobody home", {}), ModelBusy, "Nobody home (HTTP 502)", id="plain body"),
        pytest.param(reply(502, b"<h1>nginx</h1>", {}), ModelBusy, "now: Bad Gateway (HTTP 502)", id="a proxy's page"),
        pytest.param(reply(401, b"", {}), ModelFailed, "HTTP 401", id="empty body"),
        pytest.param(
            stream({"error": {"message": "Overloaded", "code": 529}}), ModelBusy, "Overloaded", id="busy in the stream"
        ),
        pytest.param(stream({"error": {"message": "Bad"}}), ModelFailed, "Bad", id="error in the stream"),
        pytest.param(
            stream(*text("Well"), {"error": {"message": "Lost", "code": 502}}), ModelCutOff, "Lost", id="error half-way"
        ),
        pytest.param(stream(b"data: {nonsense\n\n"), ModelCutOff, "nonsense", id="not JSON"),
        pytest.param(stream(b'data: ["a"]\n\n'), ModelCutOff, "cannot be read", id="not a chunk"),
        pytest.param(stream(b'data: {"choices": [7]}\n\n'), ModelCutOff, "cannot be read", id="not a choice"),
    ],
)
async def test_a_failure_has_the_providers_words_and_the_right_kind(answer, kind, words):
    with pytest.raises(kind) as caught:
        await answer_to(answer)
    assert words in caught.value.message
    assert type(caught.value) is kind


async def test_a_providers_words_are_bounded():
    with pytest.raises(ModelFailed) as caught:
        await answer_to(refuse(400, "x" * 10_000))
    assert caught.value.message.count("x") == 299


@pytest.mark.parametrize("answer", [refuse(401, f"Bad key {KEY}."), stream({"error": {"message": f"Bad key {KEY}"}})])
async def test_the_key_is_sent_but_never_shown(answer):
    async with provider(answer) as (server, model):
        with pytest.raises(ModelFailed) as caught:
            await ask(model)
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        shown = f"{caught.value} {caught.value!r} {model!r} {vars(model)}"
    assert KEY not in shown
    assert "Bad key [hidden]" in caught.value.message


async def test_without_a_key_no_authorization_is_sent():
    async with provider(say("Hi"), key=None) as (server, model):
        await ask(model)
        assert "authorization" not in server.requests[0].headers


async def test_nobody_listening_is_busy():
    async with OpenAIServer() as server:
        address = server.base_url
    endpoint = Endpoint(address)
    with pytest.raises(ModelBusy, match="cannot be reached"):
        await ask(OpenAIChat("test-1", endpoint, ManualClock(NOON)))
    await endpoint.aclose()


async def test_runs_share_a_connection():
    async with provider(say("One"), say("Two")) as (server, model):
        await ask(model)
        await asyncio.sleep(0.005)  # the last bytes of the first answer
        await ask(model)
        assert [request.connection for request in server.requests] == [1, 1]


async def test_a_connection_is_kept_though_its_last_bytes_come_late():
    ended = asyncio.Event()

    async def answer(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send(event(text("One")[0]) + b"data: [DONE]\n\n")
        await asyncio.sleep(0.02)
        await exchange.end()
        ended.set()

    async with provider(answer, say("Two")) as (server, model):
        await ask(model)
        assert not ended.is_set()
        async with asyncio.timeout(1):
            await ended.wait()
        await asyncio.sleep(0.005)  # until they are read
        await ask(model)
        assert [request.connection for request in server.requests] == [1, 1]


async def test_a_pooled_connection_that_died_is_replaced_once():
    async with provider(say("One"), hang_up, say("Two")) as (server, model):
        await ask(model)
        await asyncio.sleep(0.005)
        assert (await ask(model)).parts == [TextPart("Two")]
        assert [request.connection for request in server.requests] == [1, 1, 2]


async def test_a_fresh_connection_that_dies_is_not_tried_again_by_itself():
    async with provider(hang_up) as (server, model):
        with pytest.raises(ModelBusy, match="cannot be reached"):
            await ask(model)
        assert len(server.requests) == 1


async def test_leaving_in_the_middle_hangs_up():
    gone = asyncio.Event()

    async def answer(exchange: Exchange) -> None:
        try:
            await exchange.begin()
            while True:
                await exchange.send(event(text("on and on ")[0]))
                await asyncio.sleep(0.002)
        finally:
            gone.set()

    async with provider(answer) as (_, model):
        async with model.request_stream(HELLO, None, PLAIN) as events:
            async for _ in events:
                break
        async with asyncio.timeout(1):
            await gone.wait()


async def test_cancelling_ends_the_events_and_marks_the_answer_as_interrupted():
    async with provider(stream(*text("Well"), 3600.0)) as (_, model):
        async with model.request_stream(HELLO, None, PLAIN) as events:
            async for _ in events:
                await events.cancel()
        assert events.get().state == "interrupted"


async def test_a_slow_reader_gets_everything():
    words = [f"{number} " for number in range(300)]
    async with provider(stream(*text(*words))) as (_, model):
        shown: list[str] = []
        async with model.request_stream(HELLO, None, PLAIN) as events:
            async for each in events:
                await asyncio.sleep(0.001)
                shown.append(words_of(each))
    assert "".join(shown) == "".join(words)


async def test_the_body_asks_for_a_stream_with_usage_and_nothing_that_was_not_set():
    assert await sent() == {
        "model": "test-1",
        "messages": [{"role": "user", "content": "Hello?"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_the_system_prompt_goes_first_and_unchanged():
    body = await sent([ModelRequest.user_text_prompt("Hi <system>", instructions="You are an agent.")])
    assert body["messages"] == [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "Hi <system>"},
    ]


async def test_settings_and_the_thinking_level_are_sent_if_set():
    body = await sent(settings=ModelSettings(thinking="high", max_tokens=9, temperature=0.5, stop_sequences=["x"]))
    assert (body["reasoning_effort"], body["max_tokens"], body["temperature"], body["stop"]) == ("high", 9, 0.5, ["x"])


async def test_tools_are_sent_with_their_schema():
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tool = ToolDefinition(name="read_file", description="Read.", parameters_json_schema=schema)
    body = await sent(parameters=ModelRequestParameters(function_tools=[tool]))
    function = {"name": "read_file", "description": "Read.", "parameters": schema}
    assert body["tools"] == [{"type": "function", "function": function}]


async def test_images_are_sent_as_addresses_or_data():
    content = ["Look:", ImageUrl("https://example.org/a.png"), BinaryContent(b"\x89PNG", media_type="image/png")]
    body = await sent([ModelRequest([UserPromptPart(content)])])
    assert body["messages"][0]["content"] == [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
    ]


@pytest.mark.parametrize(
    "item", [BinaryContent(b"x", media_type="video/mp4"), DocumentUrl("https://example.org/a.pdf")]
)
async def test_content_that_the_wire_cannot_carry_is_refused(item):
    async with provider() as (_, model):
        with pytest.raises(UnsupportedContent, match="cannot be sent"):
            await ask(model, [ModelRequest([UserPromptPart(["Look:", item])])])


def turn(*, system: str = "openai-chat") -> list[ModelMessage]:
    thought = ThinkingPart("Hm.", id="reasoning_content", provider_name=system)
    first = ModelResponse([thought, ToolCallPart("f", '{"a": 1}', "call_a"), ToolCallPart("g", "", "call_b")])
    failed = ToolReturnPart("g", "No.", "call_b", outcome="failed")
    return [*HELLO, first, ModelRequest([ToolReturnPart("f", "One.", "call_a"), failed])]


async def test_tool_calls_and_results_go_back_with_the_thinking_between_them():
    body = await sent(turn())
    assert body["messages"][1:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_a", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
                {"id": "call_b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
            ],
            "reasoning_content": "Hm.",
        },
        {"role": "tool", "tool_call_id": "call_a", "content": "One."},
        {"role": "tool", "tool_call_id": "call_b", "content": '{"error":"No."}'},
    ]


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param(turn(system="anthropic"), id="another provider's"),
        pytest.param([*turn(), ModelResponse([TextPart("Done.")]), *HELLO], id="of an earlier turn"),
    ],
)
async def test_thinking_of_others_and_of_earlier_turns_is_left_out(messages):
    body = await sent(messages)
    assert "Hm." not in json.dumps(body)


async def test_an_image_from_a_tool_follows_the_results_in_a_message_of_its_own():
    result = ToolReturnPart("shoot", BinaryContent(b"\x89PNG", media_type="image/png"), "call_a")
    call_it = ModelResponse([ToolCallPart("shoot", "{}", "call_a")])
    body = await sent([*HELLO, call_it, ModelRequest([result])])
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool", "user"]
    assert any(part["type"] == "image_url" for part in body["messages"][3]["content"])


async def test_the_server_process_answers_by_itself():
    process = await asyncio.create_subprocess_exec(
        sys.executable, openai_server.__file__, stdout=asyncio.subprocess.PIPE
    )
    endpoint = Endpoint((await process.stdout.readline()).decode().strip())
    model = OpenAIChat("any", endpoint, ManualClock(NOON))
    try:
        echo = await ask(model)
        called = await ask(model, [ModelRequest.user_text_prompt('call read_file {"path": "a"}')])
    finally:
        await endpoint.aclose()
        process.terminate()
        await process.communicate()
    assert echo.parts == [TextPart("You said: Hello?")]
    assert arguments_of(called) == [("read_file", {"path": "a"})]
