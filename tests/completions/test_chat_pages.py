"""Requests as Open WebUI and LibreChat send them: messages go on in one session, side requests touch none."""

import asyncio
import json
from datetime import timedelta

import pytest

from chat_pages import (
    librechat_chat,
    librechat_title,
    open_webui_chat,
    open_webui_task,
    open_webui_with_documents,
    recorded_in_open_webui,
)
from live_server import Tap, eventually, running_server
from openai_server import call, calls, say, text
from wakeful.completions.rules import MAX_AT_ONCE
from wakeful.store.nodes import OldRun


def user(content):
    return {"role": "user", "content": content}


def assistant(content):
    return {"role": "assistant", "content": content}


async def send(server, request):
    body, headers = request
    answer = await server.rest.post("/v1/chat/completions", json=body, headers=headers)
    assert answer.is_success, answer.text
    return answer


def streamed(answer):
    """Return the text of a streamed answer; fail unless it ends as it should."""
    lines = [line for line in answer.text.split("\n\n") if line.startswith("data: ")]
    assert lines[-1] == "data: [DONE]"
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    return "".join(each["choices"][0]["delta"].get("content", "") for each in chunks if each["choices"])


def say_again(answer):
    """Return the script of a recorded answer: with a call of a tool between its paragraphs."""
    *looks, last = answer.split("\n\n")
    return [*(calls(*text(look), *call("list_files", "{}")) for look in looks), say(last)]


def end_of(messages):
    """Return the last question of a conversation and the answer before it, without spaces."""
    before, last = [0, *(place for place, each in enumerate(messages) if each["role"] == "user")][-2:]
    answer = "".join(each["content"] for each in messages[before:last] if each["role"] == "assistant")
    return "".join(answer.split()), messages[last]["content"]


async def test_requests_recorded_in_open_webui_go_on_where_its_page_does(stored_server):
    server, provider = stored_server, stored_server.provider
    steps = {}  # by session
    for each in recorded_in_open_webui():
        asked = len(provider.requests)
        provider.then(*say_again(each.answer))
        answer = await send(server, (each.body, each.headers))
        if each.is_aside:
            assert "X-Wakeful-Session" not in answer.headers
            assert answer.json()["choices"][0]["message"]["content"] == each.answer
            continue
        assert streamed(answer).split() == each.answer.split(), each.step
        assert answer.headers["X-Wakeful-Ignored"] == "tools"
        assert end_of(provider.requests[asked].body["messages"]) == end_of(each.body["messages"]), each.step
        steps.setdefault(answer.headers["X-Wakeful-Session"], []).append(each.step)
    (session, first), *others = steps.items()
    assert first == [
        "first",
        "second",
        "regenerated",
        "third",
        "last edited",
        "fourth",
        "regenerated with a suggestion",
        "after the suggestion",
    ]
    assert [steps for _, steps in others] == [
        ["under a replaced answer"],
        ["first edited"],
        ["other chat", "other chat, second"],
        ["other person", "other person, second"],
        ["with a document", *(f"with a document, {step}" for step in ("second", "regenerated", "third"))],
    ]
    shown = [each for each in await server.messages(session) if each["superseded_by"] is None]
    assert [each["content"] for each in shown if each["role"] == "user"] == [
        "Hi",
        "look at the files",
        "Thanks a lot",
        "Tell me more",
        "More concise",  # which Open WebUI does not show, only its answer
        "And now?",
    ]


@pytest.mark.parametrize("chat", ["6cf27f85-0000-4000-8000-000000000002", None], ids=["chat id", "history"])
async def test_a_chat_in_open_webui_is_one_session_and_its_side_requests_touch_none(server, chat):
    server.provider.then(
        say("Hello"), say('{"title": "Greetings"}'), say('{"tags": []}'), say('{"follow_ups": []}'), say("Fine")
    )
    first = await send(server, open_webui_chat(user("Hi"), chat=chat))
    assert streamed(first) == "Hello"
    for what in ("Write a title of a few words.", "Give one to three tags.", "Suggest questions that may follow."):
        aside = await send(server, open_webui_task(what, chat))
        assert "X-Wakeful-Session" not in aside.headers
        assert aside.json()["choices"][0]["message"]["content"].startswith("{")
        assert "tools" not in server.provider.last  # the agent's model alone
        assert [each["role"] for each in server.provider.last["messages"]] == ["user"]
    second = await send(server, open_webui_chat(user("Hi"), assistant("Hello"), user("How are you?"), chat=chat))
    session = first.headers["X-Wakeful-Session"]
    assert second.headers["X-Wakeful-Session"] == session
    assert [each["content"] for each in await server.messages(session)] == ["Hi", "Hello", "How are you?", "Fine"]
    assert len((await server.call("GET", "/sessions"))["sessions"]) == 1
    assert len((await server.call("GET", "/runs"))["runs"]) == 2


async def test_side_requests_count_in_the_agents_budget(server):
    agent = await server.change_agent(budgets={"day_tokens": 20})
    server.provider.then(say("Title"), say("Title"))
    for _ in range(2):
        await send(server, open_webui_task("Write a title."))
    spent = await server.call("GET", f"/agents/{agent['id']}/usage")
    assert spent["today"]["tokens"] == 26
    body, headers = open_webui_task("Write a title.")
    refused = await server.rest.post("/v1/chat/completions", json=body, headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "insufficient_quota")


async def test_a_question_with_documents_is_for_the_agent(server):
    server.provider.then(say("At five."))
    answer = await send(server, open_webui_with_documents("When is tea?"))
    assert streamed(answer) == "At five."
    assert "X-Wakeful-Session" in answer.headers


async def test_a_conversation_in_librechat_is_one_session_from_before_it_has_an_id(server):
    server.provider.then(say("Hello"), say("Greetings"), say("Fine"), say("Good"))
    first = await send(server, librechat_chat(user("Hi")))
    await send(server, librechat_title("c-1"))
    talk = [user("Hi"), assistant("Hello"), user("How are you?")]
    second = await send(server, librechat_chat(*talk, conversation="c-1"))
    third = await send(
        # Reflowed by the client: now its key counts, not the text of the answer.
        server,
        librechat_chat(*talk, assistant("**Fine**"), user("Good?"), conversation="c-1"),
    )
    sessions = {each.headers["X-Wakeful-Session"] for each in (first, second, third)}
    assert len(sessions) == 1
    assert streamed(third) == "Good"


@pytest.mark.parametrize("answer", ["Heads", "Let me look\n\nHeads"], ids=["one step", "a tool"])
@pytest.mark.parametrize("goes_on", [False, True], ids=["at once", "after another message"])
async def test_an_answer_that_was_replaced_goes_on_in_a_new_session(server, answer, goes_on):
    server.provider.then(*say_again(answer), say("Tails"))
    asked = [user("Toss a coin")]
    first, second = [await send(server, open_webui_chat(*asked, chat="c")) for _ in range(2)]
    assert first.headers["X-Wakeful-Session"] == second.headers["X-Wakeful-Session"]
    if goes_on:
        server.provider.then(say("Yes"))
        await send(server, open_webui_chat(*asked, assistant("Tails"), user("Really?"), chat="c"))
    server.provider.then(say("Right"))
    third = await send(server, open_webui_chat(*asked, assistant(answer), user("Sure?"), chat="c"))
    assert third.headers["X-Wakeful-Session"] != first.headers["X-Wakeful-Session"]
    assert [each["content"] for each in server.provider.last["messages"][1:]] == ["Toss a coin", answer, "Sure?"]


async def test_a_last_message_is_edited_where_all_answers_are_the_same(server):
    server.provider.always = say("Ok")
    talk = [user("One"), assistant("Ok")]
    sent = [[*talk, user("Two")], [*talk, user("Two, edited")]]
    sent.append([*sent[-1], assistant("Ok"), user("Three")])
    answers = [await send(server, open_webui_chat(*each, chat="c")) for each in ([user("One")], *sent)]
    assert len({each.headers["X-Wakeful-Session"] for each in answers}) == 1
    shown = await server.messages(answers[0].headers["X-Wakeful-Session"])
    asked = [each["content"] for each in shown if each["role"] == "user" and each["superseded_by"] is None]
    assert asked == ["One", "Two, edited", "Three"]


async def test_a_question_that_a_scheduled_run_followed_is_not_replaced(server):
    server.provider.then(say("Hello"), say("Woken"), say("Again"))
    first = await send(server, open_webui_chat(user("Hi"), chat="c"))
    session = first.headers["X-Wakeful-Session"]
    await server.book(session, "Look after the tea.")

    async def has_woken():
        return (await server.messages(session))[-1]["content"] == "Woken"

    await eventually(has_woken)
    again = await send(server, open_webui_chat(user("Hi"), chat="c"))
    assert again.headers["X-Wakeful-Session"] != session
    assert [each["superseded_by"] for each in await server.messages(session)] == [None] * 4


async def test_thoughts_that_a_client_keeps_in_the_answer_do_not_matter(server):
    server.provider.then(say("Hello"), say("Fine"))
    first = await send(server, open_webui_chat(user("Hi")))
    kept = '<details type="reasoning" done="true"><summary>Thought</summary>Hm.</details>\nHello '
    second = await send(server, open_webui_chat(user("Hi"), assistant(kept), user("How are you?")))
    assert first.headers["X-Wakeful-Session"] == second.headers["X-Wakeful-Session"]


async def test_a_client_that_left_with_a_part_of_the_answer_comes_back_to_its_session(server):
    server.provider.then(say("Hello. " * 50), say("Fine"))
    first = await send(server, open_webui_chat(user("Hi")))
    second = await send(server, open_webui_chat(user("Hi"), assistant("Hello. " * 40), user("How are you?")))
    assert first.headers["X-Wakeful-Session"] == second.headers["X-Wakeful-Session"]


@pytest.mark.parametrize("shown", ["", "The", "<think>Hm.</think>", None])
async def test_an_empty_or_short_answer_finds_nobody_elses_conversation(stored_server, shown):
    server = stored_server
    server.provider.then(say("The code of the safe is 4711."), say("I do not know."))
    theirs = await send(server, librechat_chat(user("Hi"), person=None))
    mine = await send(server, librechat_chat(user("Hi"), assistant(shown), user("What is the code?"), person=None))
    assert mine.headers["X-Wakeful-Session"] != theirs.headers["X-Wakeful-Session"]
    assert "4711" not in str(server.provider.last)


async def test_a_conversation_without_any_answer_in_it_is_a_new_one(server):
    server.provider.then(say("The code of the safe is 4711."), say("I do not know."))
    theirs = await send(server, librechat_chat(user("Hi"), person=None))
    mine = await send(server, librechat_chat(user("Hi"), user("What is the code?"), person=None))
    assert mine.headers["X-Wakeful-Session"] != theirs.headers["X-Wakeful-Session"]


async def test_a_run_in_progress_is_nobody_elses_conversation(server):
    tap = Tap()
    server.provider.then(tap)
    theirs = asyncio.create_task(send(server, librechat_chat(user("Hi"), person=None)))
    await asyncio.wait_for(tap.is_asked.wait(), 10)
    server.provider.then(say("Fine"))
    mine = await send(server, librechat_chat(user("Hi"), assistant("Hello"), user("How are you?"), person=None))
    tap.say("The code is 4711.")
    tap.end()
    assert mine.headers["X-Wakeful-Session"] != (await theirs).headers["X-Wakeful-Session"]


@pytest.mark.parametrize("name", ["X-OpenWebUI-User-Id", "X-User-Id", "user", "safety_identifier"])
@pytest.mark.parametrize("chat", ["c-1", None], ids=["chat id", "history"])
async def test_people_that_a_chat_page_names_do_not_mix(stored_server, name, chat):
    server = stored_server
    server.provider.always = say("Ok")

    async def ask(person, *messages):
        body, headers = librechat_chat(*messages, conversation=chat, person=None)
        if name.startswith("X-"):
            headers |= {name: person}
        else:
            body |= {name: person}
        answer = await send(server, (body, headers))
        assert "user" not in answer.headers.get("X-Wakeful-Ignored", "")
        return answer.headers["X-Wakeful-Session"]

    first = {person: await ask(person, user("Hi")) for person in ("ada", "bob")}
    assert first["ada"] != first["bob"]
    for person in ("ada", "bob"):
        assert await ask(person, user("Hi"), assistant("Ok"), user("And?")) == first[person]


async def test_an_answer_that_two_conversations_have_tells_neither(server):
    """Two people behind one token, without names: the next message could be of either."""
    server.provider.always = say("Ok")
    sessions = [await send(server, librechat_chat(user("Hi"), person=None)) for _ in range(2)]
    talk = [user("Hi"), assistant("Ok")]
    sessions += [await send(server, librechat_chat(*talk, user(more), person=None)) for more in ("A?", "B?")]
    assert len({each.headers["X-Wakeful-Session"] for each in sessions}) == 4
    talk = [*talk, user("A?"), assistant("Ok"), user("And then?")]
    again = await send(server, librechat_chat(*talk, person=None))
    assert again.headers["X-Wakeful-Session"] == sessions[2].headers["X-Wakeful-Session"]


@pytest.mark.parametrize("shown", ["", "Hel", "(stopped by the user)"])
async def test_a_chat_with_an_id_goes_on_after_an_answer_that_was_stopped(server, shown):
    server.provider.then(say("Hello, Ada"), say("Good morning"), say("Fine"))
    first = await send(server, open_webui_chat(user("Hi"), chat="c"))
    await send(server, open_webui_chat(user("Hi"), chat="c"))  # regenerated
    talk = [user("Hi"), assistant(shown), user("How are you?")]
    second = await send(server, open_webui_chat(*talk, chat="c"))
    assert first.headers["X-Wakeful-Session"] == second.headers["X-Wakeful-Session"]


async def test_a_conversation_goes_on_after_its_old_runs_were_deleted(server):
    server.provider.then(say("Hello"), say("Fine"))
    first = await send(server, open_webui_chat(user("Hi")))
    old = OldRun(id=first.headers["X-Wakeful-Run"], wake_id=None, queued_at=0)
    before = server.node.clock.now() + timedelta(days=1)
    assert await server.node.store.write(lambda tx: tx.storage.delete_runs([old], before)) == 1
    second = await send(server, open_webui_chat(user("Hi"), assistant("Hello"), user("How are you?")))
    assert first.headers["X-Wakeful-Session"] == second.headers["X-Wakeful-Session"]


async def test_a_copy_of_a_chat_leaves_the_session_to_its_original(server):
    server.provider.then(say("Hello"), say("One"), say("Two"))
    talk = [user("Hi"), assistant("Hello")]
    first = await send(server, open_webui_chat(user("Hi"), chat="original"))
    copy = await send(server, open_webui_chat(*talk, user("A?"), chat="copy"))
    again = await send(server, open_webui_chat(*talk, user("B?"), chat="original"))
    assert again.headers["X-Wakeful-Session"] == first.headers["X-Wakeful-Session"]
    assert copy.headers["X-Wakeful-Session"] != first.headers["X-Wakeful-Session"]


async def test_another_token_has_other_conversations(server):
    made = await server.call("POST", "/tokens", json={"name": "other", "scope": "chat"})
    server.provider.then(say("Hello"), say("Fine"))
    first = await send(server, open_webui_chat(user("Hi"), chat="c"))
    body, headers = open_webui_chat(user("Hi"), assistant("Hello"), user("More"), chat="c")
    second = await server.rest.post(
        "/v1/chat/completions", json=body, headers=headers | {"Authorization": f"Bearer {made['secret']}"}
    )
    assert first.headers["X-Wakeful-Session"] != second.headers["X-Wakeful-Session"]


async def test_a_token_has_a_few_side_requests_at_once_and_other_tokens_have_their_own(server):
    made = await server.call("POST", "/tokens", json={"name": "other", "scope": "chat"})
    taps = [Tap() for _ in range(MAX_AT_ONCE)]
    server.provider.then(*taps)
    asked = [asyncio.create_task(send(server, open_webui_task("Write a title."))) for _ in taps]
    for tap in taps:
        await asyncio.wait_for(tap.is_asked.wait(), 10)
    body, headers = open_webui_task("Write a title.")
    refused = await server.rest.post("/v1/chat/completions", json=body, headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_side_requests")
    assert int(refused.headers["Retry-After"]) > 0
    server.provider.then(say("Title"), say("Title"))
    other = {"Authorization": f"Bearer {made['secret']}"}
    assert (await server.rest.post("/v1/chat/completions", json=body, headers=headers | other)).is_success
    for tap in taps:
        tap.say("Title")
        tap.end()
    await asyncio.gather(*asked)
    await send(server, open_webui_task("Write a title."))


async def test_side_requests_can_be_refused(settings):
    async with running_server(settings, v1_side_requests="refuse") as server:
        body, headers = open_webui_task("Write a title.")
        refused = await server.rest.post("/v1/chat/completions", json=body, headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "side_requests_off")
    assert "v1_side_requests" in refused.json()["error"]["message"]
