"""Chat completions, as the official `openai` client asks for them."""

import asyncio

import openai
import pytest
from openai import AsyncOpenAI

from live_server import Tap, eventually
from openai_server import call, calls, say, stream, text, thinking, usage


@pytest.fixture
async def ai(server):
    async with AsyncOpenAI(base_url=f"{server.address}/v1", api_key=server.token, max_retries=0) as client:
        yield client


def user(content):
    return {"role": "user", "content": content}


def assistant(content):
    return {"role": "assistant", "content": content}


async def test_agents_are_models(ai, server):
    listed = [model async for model in ai.models.list()]
    assert [(model.id, model.object, model.owned_by) for model in listed] == [("Wakeful", "model", "wakeful")]
    assert (await ai.models.retrieve("Wakeful")).id == "Wakeful"


async def test_agents_with_one_name_are_told_apart_by_their_ids(ai, server):
    await server.call("POST", "/agents", json={"name": "Wakeful"})
    agents = (await server.call("GET", "/agents"))["agents"]
    listed = {model.id async for model in ai.models.list()}
    assert listed == {f"agent:{agent['id']}" for agent in agents}
    with pytest.raises(openai.NotFoundError) as refused:
        await ai.chat.completions.create(model="Wakeful", messages=[user("Hi")])
    assert refused.value.code == "model_not_found"
    assert all(model in str(refused.value) for model in listed)
    server.provider.then(say("Hello"))
    answer = await ai.chat.completions.create(model=min(listed), messages=[user("Hi")])
    assert answer.choices[0].message.content == "Hello"


async def test_a_whole_answer_has_text_reasoning_usage_and_its_session(ai, server):
    server.provider.then(stream(*thinking("Hm. "), *text("Hel", "lo"), usage(12, 3)))
    raw = await ai.chat.completions.with_raw_response.create(model="Wakeful", messages=[user("Hi")])
    answer = raw.parse()
    [choice] = answer.choices
    assert (choice.message.role, choice.message.content, choice.finish_reason) == ("assistant", "Hello", "stop")
    assert choice.message.reasoning_content == "Hm."
    assert answer.usage.prompt_tokens >= 12
    assert answer.model == "Wakeful"
    messages = await server.messages(raw.headers["X-Wakeful-Session"])
    assert [(each["role"], each["content"]) for each in messages] == [("user", "Hi"), ("assistant", "Hello")]


async def test_a_streamed_answer_begins_with_its_role_and_ends_with_usage(ai, server):
    server.provider.then(stream(*thinking("Hm. "), *text("Hel", "lo"), usage(12, 3)))
    pieces = await ai.chat.completions.create(
        model="Wakeful", messages=[user("Hi")], stream=True, stream_options={"include_usage": True}
    )
    got = [chunk async for chunk in pieces]
    assert got[0].choices[0].delta.role == "assistant"
    deltas = [chunk.choices[0].delta for chunk in got if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == "Hello"
    assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == "Hm. "
    assert got[-2].choices[0].finish_reason == "stop"
    assert (got[-1].choices, got[-1].usage.completion_tokens) == ([], 3)


async def test_text_before_and_after_a_tool_call_is_one_answer(ai, server):
    server.provider.then(calls(*text("Let me look."), *call("list_files", "{}"), usage(10, 5)), say("Nothing there."))
    answer = await ai.chat.completions.create(model="Wakeful", messages=[user("Look")])
    assert answer.choices[0].message.content == "Let me look.\n\nNothing there."


async def test_an_edited_history_becomes_a_new_session_with_that_history(ai, server):
    server.provider.then(say("Hello"), say("Fine"))
    first = await ai.chat.completions.with_raw_response.create(model="Wakeful", messages=[user("Hi")])
    edited = [user("Hi there"), assistant("Hello"), user("How are you?")]
    second = await ai.chat.completions.with_raw_response.create(model="Wakeful", messages=edited)
    session = second.headers["X-Wakeful-Session"]
    assert session != first.headers["X-Wakeful-Session"]
    shown = [(each["content"], each["source"]) for each in await server.messages(session)]
    assert shown == [("Hi there", "preloaded"), ("Hello", "preloaded"), ("How are you?", None), ("Fine", None)]
    assert [each["content"] for each in server.provider.requests[1].body["messages"][1:]] == [
        "Hi there",
        "Hello",
        "How are you?",
    ]


async def test_an_answer_that_was_regenerated_goes_on_in_its_own_session(ai, server):
    server.provider.then(say("Heads"), say("Tails"), say("Right"))
    asked = [user("Toss a coin")]
    first = await ai.chat.completions.with_raw_response.create(model="Wakeful", messages=asked)
    second = await ai.chat.completions.with_raw_response.create(model="Wakeful", messages=asked)
    assert first.headers["X-Wakeful-Session"] != second.headers["X-Wakeful-Session"]
    talk = [*asked, assistant("Heads"), user("Sure?")]
    third = await ai.chat.completions.with_raw_response.create(model="Wakeful", messages=talk)
    assert third.headers["X-Wakeful-Session"] == first.headers["X-Wakeful-Session"]


@pytest.mark.parametrize("header", ["X-Wakeful-Session", "X-OpenWebUI-Chat-Id", "X-Conversation-Id"])
async def test_a_header_names_the_conversation(ai, server, header):
    server.provider.then(say("Hello"), say("Other"), say("Fine"))
    ask = ai.chat.completions.with_raw_response.create
    first = await ask(model="Wakeful", messages=[user("Hi")], extra_headers={header: "one"})
    other = await ask(model="Wakeful", messages=[user("Hi")], extra_headers={header: "two"})
    talk = [user("Hi"), assistant("(stopped by the user)"), user("More")]
    second = await ask(model="Wakeful", messages=talk, extra_headers={header: "one"})
    sessions = [each.headers["X-Wakeful-Session"] for each in (first, other, second)]
    assert sessions[0] == sessions[2] != sessions[1]


async def test_a_session_is_named_by_its_id(ai, server):
    server.provider.then(say("Hello"))
    session = await server.session()
    headers = {"X-Wakeful-Session": session}
    answer = await ai.chat.completions.create(model="Wakeful", messages=[user("Hi")], extra_headers=headers)
    assert answer.choices[0].message.content == "Hello"
    assert [each["content"] for each in await server.messages(session)] == ["Hi", "Hello"]
    agent = await server.call("POST", "/agents", json={"name": "Other"})
    with pytest.raises(openai.ConflictError, match="leave the header"):
        await ai.chat.completions.create(model=agent["name"], messages=[user("Hi")], extra_headers=headers)


async def test_a_recall_lands_where_the_client_goes_on(ai, server):
    server.provider.then(say("Hello"), say("The tea is ready."), say("It was ready at five."))
    talk = [user("Hi")]
    first = await ai.chat.completions.with_raw_response.create(model="Wakeful", messages=talk)
    session = first.headers["X-Wakeful-Session"]
    await server.book(session, "Look after the tea.")

    async def has_woken():
        return any(each["content"] == "The tea is ready." for each in await server.messages(session))

    await eventually(has_woken)
    talk += [assistant("Hello"), user("What about the tea?")]
    second = await ai.chat.completions.with_raw_response.create(model="Wakeful", messages=talk)
    assert second.headers["X-Wakeful-Session"] == session
    sent = [str(each["content"]) for each in server.provider.last["messages"]]
    assert any("The tea is ready." in each for each in sent)


async def test_a_system_message_comes_after_the_owners_prompt(ai, server):
    await server.change_agent(system_prompt="You are terse.")
    server.provider.then(say("Hi"))
    messages = [{"role": "system", "content": "Speak like a pirate."}, user("Hi")]
    await ai.chat.completions.create(model="Wakeful", messages=messages)
    prompt = server.provider.requests[0].body["messages"][0]["content"]
    assert prompt.index("You are terse.") < prompt.index("Speak like a pirate.")


F = {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"n": 2}, "one answer"),
        ({"tools": [F], "tool_choice": "required"}, "its owner gave it.*'required'"),
        ({"tools": [F], "tool_choice": {"type": "function", "function": {"name": "f"}}}, "'name': 'f'"),
        ({"functions": [F["function"]], "function_call": {"name": "f"}}, "`function_call`.*'name': 'f'"),
        ({"response_format": {"type": "json_object"}}, "answers in text"),
        ({"messages": [assistant("Hi")]}, "must have the role 'user'"),
        ({"messages": [user([{"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}])]}, "data URI"),
        ({"messages": [user([{"type": "input_audio", "input_audio": {}}])]}, "'input_audio'"),
        ({"messages": [user("")]}, "is empty"),
    ],
)
async def test_what_an_agent_cannot_do_is_refused_in_words(ai, asked, words):
    with pytest.raises(openai.BadRequestError, match=words) as refused:
        await ai.chat.completions.create(**({"model": "Wakeful", "messages": [user("Hi")]} | asked))
    assert refused.value.type == "invalid_request_error"


async def test_sampling_parameters_are_ignored_and_named(ai, server):
    server.provider.then(say("Hi"))
    raw = await ai.chat.completions.with_raw_response.create(
        model="Wakeful", messages=[user("Hi")], temperature=0.1, max_tokens=5, seed=1, n=1
    )
    assert raw.headers["X-Wakeful-Ignored"] == "max_tokens, seed, temperature"


@pytest.mark.parametrize(
    "asked",
    [
        {"tools": [F]},
        {"tools": [F], "tool_choice": "auto", "parallel_tool_calls": False},
        {"tools": [F], "tool_choice": "none"},
        {"functions": [F["function"]]},
        {"functions": [F["function"]], "function_call": "auto"},
    ],
    ids=str,
)
async def test_tools_that_the_agent_may_leave_alone_are_ignored_and_named(ai, server, asked):
    server.provider.then(say("Hi"))
    create = ai.chat.completions.with_raw_response.create
    raw = await create(model="Wakeful", messages=[user("Hi")], **asked)
    assert raw.parse().choices[0].message.content == "Hi"
    assert raw.headers["X-Wakeful-Ignored"].split(", ") == sorted(asked)
    assert "f" not in [each["function"]["name"] for each in server.provider.last["tools"]]  # it has its own


async def test_a_failure_in_mid_stream_is_an_error_object(ai, server):
    server.provider.then(stream(*text("Half an ans"), finish=None, done=False))
    pieces = await ai.chat.completions.create(model="Wakeful", messages=[user("Hi")], stream=True)
    with pytest.raises(openai.APIError, match="gave no answer"):
        [chunk async for chunk in pieces]


async def test_a_failed_run_is_an_error_that_is_not_repeated(server):
    server.provider.then(stream(*text("Half an ans"), finish=None, done=False))
    async with AsyncOpenAI(base_url=f"{server.address}/v1", api_key=server.token) as ai:  # it repeats 5xx by itself
        with pytest.raises(openai.InternalServerError, match="gave no answer"):
            await ai.chat.completions.create(model="Wakeful", messages=[user("Hi")])
    assert len(server.provider.requests) == 1


async def test_a_busy_conversation_is_waited_for(ai, server):
    tap = Tap()
    server.provider.then(tap, say("Second"))
    session = await server.session()
    headers = {"X-Wakeful-Session": session}
    first = asyncio.create_task(
        ai.chat.completions.create(model="Wakeful", messages=[user("One")], extra_headers=headers)
    )
    await asyncio.wait_for(tap.is_asked.wait(), 10)
    second = asyncio.create_task(
        ai.chat.completions.create(model="Wakeful", messages=[user("Two")], extra_headers=headers)
    )
    await asyncio.sleep(0.2)
    assert not second.done()
    tap.say("First")
    tap.end()
    answers = [(await each).choices[0].message.content for each in (first, second)]
    assert answers == ["First", "Second"]


async def test_a_conversation_that_stays_busy_gets_a_409(ai, server, monkeypatch):
    monkeypatch.setattr(server.node.services.completions, "wait_seconds", 0.2)
    tap = Tap()
    server.provider.then(tap)
    headers = {"X-Wakeful-Session": await server.session()}
    first = asyncio.create_task(
        ai.chat.completions.create(model="Wakeful", messages=[user("One")], extra_headers=headers)
    )
    await asyncio.wait_for(tap.is_asked.wait(), 10)
    with pytest.raises(openai.ConflictError) as refused:
        await ai.chat.completions.create(model="Wakeful", messages=[user("Two")], extra_headers=headers)
    assert refused.value.code == "session_busy"
    assert int(refused.value.response.headers["Retry-After"]) > 0
    tap.say("First")
    tap.end()
    assert (await first).choices[0].message.content == "First"
