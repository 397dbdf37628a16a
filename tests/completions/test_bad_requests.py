"""Wrong, large and malformed chat completions: errors in OpenAI's form, and nothing that breaks the server."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fixtures.stores import IS_LONG
from openai_server import say, varied

MEGABYTE = 1024 * 1024


def body(*messages, **more):
    return {"model": "Wakeful", "messages": [{"role": "user", "content": "Hi"}, *messages]} | more


def check_error(answer, status, kind):
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (status, kind), answer.text
    assert set(error) == {"message", "type", "param", "code"}
    return error


async def test_errors_of_the_gate_have_openais_form(server):
    post = server.rest.post
    headers = {"Authorization": "Bearer wrong"}
    check_error(await post("/v1/chat/completions", json=body(), headers=headers), 401, "authentication_error")
    answer = await post("/v1/chat/completions", json=body(), headers={"Host": "evil.example"})
    assert "evil.example" in check_error(answer, 403, "permission_error")["message"]
    answer = await post("/v1/chat/completions", json=body(), headers={"Origin": "https://evil.example"})
    check_error(answer, 403, "permission_error")
    check_error(await server.rest.get("/v1/embeddings"), 404, "not_found_error")
    check_error(await server.rest.get("/v1/chat/completions"), 405, "invalid_request_error")


async def test_other_paths_keep_our_form(server):
    answer = await server.rest.get("/nothing")
    assert set(answer.json()["error"]) == {"code", "message"}


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/models"), ("POST", "/v1/chat/completions")])
async def test_a_token_without_the_scope_chat_is_refused(server, method, path):
    made = await server.call("POST", "/tokens", json={"name": "reader", "scope": "read"})
    headers = {"Authorization": f"Bearer {made['secret']}"}
    error = check_error(await server.rest.request(method, path, json=body(), headers=headers), 403, "permission_error")
    assert "'chat'" in error["message"]


async def test_an_unknown_model_names_the_agents(server):
    error = check_error(
        await server.rest.post("/v1/chat/completions", json=body(model="gpt-5")), 404, "not_found_error"
    )
    assert (error["code"], error["param"]) == ("model_not_found", "model")
    assert "'Wakeful'" in error["message"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'"text"', b"{}", b'{"model": "Wakeful"}', b'{"model":"Wakeful","messages":[]}', b"\xff\xfe"],
    ids=repr,
)
async def test_malformed_json_is_refused(server, content):
    headers = {"Content-Type": "application/json"}
    answer = await server.rest.post("/v1/chat/completions", content=content, headers=headers)
    check_error(answer, 400, "invalid_request_error")


async def test_a_body_over_twenty_megabytes_is_refused(server):
    answer = await server.rest.post("/v1/chat/completions", content=b" " * (20 * MEGABYTE + 1))
    error = check_error(answer, 413, "invalid_request_error")
    assert "20,971,520" in error["message"]


async def test_a_history_of_ten_megabytes_works(server):
    text = varied(100_000)
    history = [
        each
        for number in range(50)
        for each in (
            {"role": "user", "content": f"{number} {text}"},
            {"role": "assistant", "content": f"{text} {number}"},
        )
    ]
    sent = {"model": "Wakeful", "messages": [*history, {"role": "user", "content": "And now?"}]}
    assert len(json.dumps(sent)) > 10 * MEGABYTE * 0.95
    server.provider.then(say("A summary."), say("Still here."))
    answer = await server.rest.post("/v1/chat/completions", json=sent)
    assert answer.json()["choices"][0]["message"]["content"] == "Still here."
    assert len(await server.messages(answer.headers["X-Wakeful-Session"])) == 103
    server.provider.then(say("Yes."))
    sent["messages"] += [{"role": "assistant", "content": "Still here."}, {"role": "user", "content": "Sure?"}]
    again = await server.rest.post("/v1/chat/completions", json=sent)
    assert again.headers["X-Wakeful-Session"] == answer.headers["X-Wakeful-Session"]


async def test_an_image_is_shown_to_the_model_and_an_address_is_not_fetched(server):
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{pixel}"}},
    ]
    server.provider.then(say("A dot."), say("Yes."))
    talk = [{"role": "user", "content": parts}]
    first = await server.rest.post("/v1/chat/completions", json={"model": "Wakeful", "messages": talk})
    [_, shown] = server.provider.last["messages"][-1]["content"]
    assert shown["type"] == "image_url"
    talk += [{"role": "assistant", "content": "A dot."}, {"role": "user", "content": "Sure?"}]
    second = await server.rest.post("/v1/chat/completions", json={"model": "Wakeful", "messages": talk})
    assert first.headers["X-Wakeful-Session"] == second.headers["X-Wakeful-Session"]
    parts[1]["image_url"]["url"] = "data:image/png;base64,AAAA"
    answer = await server.rest.post("/v1/chat/completions", json={"model": "Wakeful", "messages": talk[:1]})
    assert "PNG, JPEG" in check_error(answer, 400, "invalid_request_error")["message"]


async def test_a_budget_that_is_used_up_ends_the_answer_in_words(server):
    await server.change_agent(budgets={"day_tokens": 1})
    server.provider.then(say("Hello"))
    first = await server.rest.post("/v1/chat/completions", json=body())
    assert first.json()["choices"][0]["message"]["content"] == "Hello"
    second = await server.rest.post("/v1/chat/completions", json=body())
    [choice] = second.json()["choices"]
    assert choice["finish_reason"] == "length"
    assert "budget is used up" in choice["message"]["content"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    "model",
    "messages",
    "stream",
    "n",
    "tools",
    "tool_choice",
    "response_format",
    "stream_options",
    "role",
    "user",
)
PARTS = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image_url", "input_audio", "refusal"]) | JSON},
    optional={"text": st.text() | JSON, "image_url": st.fixed_dictionaries({"url": st.text() | JSON}) | JSON},
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system", "tool"]) | JSON},
        optional={"content": st.text() | st.lists(PARTS | JSON, max_size=3) | JSON},
    )
    | JSON,
    max_size=4,
)


@settings(
    max_examples=300 if IS_LONG else 40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    sent=st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=8), JSON, max_size=4),
    messages=MESSAGES,
    key=st.sampled_from(["X-Wakeful-Session", "X-OpenWebUI-Chat-Id", "X-Conversation-Id"]),
    value=st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=20),
)
async def test_no_generated_request_breaks_the_server(server, sent, messages, key, value):
    server.provider.always = say("Fine.")
    sent = {"model": "Wakeful", "messages": messages} | sent
    content = json.dumps(sent).encode()
    headers = {"Content-Type": "application/json", key: value.strip().encode("latin-1")}
    answer = await server.rest.post("/v1/chat/completions", content=content, headers=headers)
    assert answer.status_code < 500, (sent, answer.text)
    assert answer.status_code == 200 or set(answer.json()["error"]) == {"message", "type", "param", "code"}
