"""Requests as Open WebUI and LibreChat send them: messages go on in one session, side requests touch none."""

import json

import pytest

from chat_pages import librechat_chat, librechat_title, open_webui_chat, open_webui_task, open_webui_with_documents
from live_server import eventually, running_server
from openai_server import say


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


async def test_an_edited_message_in_a_chat_with_an_id_gets_a_new_session(server):
    server.provider.then(say("Hello"), say("Fine"), say("Well"), say("Good"))
    first = await send(server, open_webui_chat(user("Hi"), chat="c"))
    talk = [user("Hi"), assistant("Hello"), user("How are you?")]  # the first message is edited, not the last
    await send(server, open_webui_chat(*talk, chat="c"))
    edited = [user("Good morning")]
    third = await send(server, open_webui_chat(*edited, chat="c"))
    fourth = await send(server, open_webui_chat(*edited, assistant("Well"), user("And?"), chat="c"))
    assert first.headers["X-Wakeful-Session"] != third.headers["X-Wakeful-Session"]
    assert third.headers["X-Wakeful-Session"] == fourth.headers["X-Wakeful-Session"]


async def test_a_regenerated_or_edited_last_message_stays_in_the_session_of_its_chat(server):
    server.provider.then(say("Hello"), say("Heads"), say("Tails"), say("Edge"), say("Right"))
    first = await send(server, open_webui_chat(user("Hi"), chat="c"))
    asked = [user("Hi"), assistant("Hello"), user("Toss a coin")]
    answers = [await send(server, open_webui_chat(*asked, chat="c")) for _ in range(2)]  # the second: regenerated
    edited = [user("Hi"), assistant("Hello"), user("Toss a thick coin")]
    answers.append(await send(server, open_webui_chat(*edited, chat="c")))
    answers.append(await send(server, open_webui_chat(*edited, assistant("Edge"), user("Sure?"), chat="c")))
    session = first.headers["X-Wakeful-Session"]
    assert {each.headers["X-Wakeful-Session"] for each in answers} == {session}  # so its recalls stay with the chat
    shown = [each["content"] for each in await server.messages(session) if each["superseded_by"] is None]
    assert shown == ["Hi", "Hello", "Toss a thick coin", "Edge", "Sure?", "Right"]
    sent = [each["content"] for each in server.provider.last["messages"][1:]]
    assert sent == shown[:-1]


async def test_an_answer_that_was_replaced_goes_on_in_a_new_session(server):
    server.provider.then(say("Heads"), say("Tails"), say("Right"))
    asked = [user("Toss a coin")]
    first, second = [await send(server, open_webui_chat(*asked, chat="c")) for _ in range(2)]
    assert first.headers["X-Wakeful-Session"] == second.headers["X-Wakeful-Session"]
    third = await send(server, open_webui_chat(*asked, assistant("Heads"), user("Sure?"), chat="c"))
    assert third.headers["X-Wakeful-Session"] != first.headers["X-Wakeful-Session"]
    assert [each["content"] for each in server.provider.last["messages"][1:]] == ["Toss a coin", "Heads", "Sure?"]


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
    server.provider.then(say("Hello, Ada"), say("Fine"))
    first = await send(server, open_webui_chat(user("Hi")))
    second = await send(server, open_webui_chat(user("Hi"), assistant("Hello,"), user("How are you?")))
    assert first.headers["X-Wakeful-Session"] == second.headers["X-Wakeful-Session"]


async def test_another_token_has_other_conversations(server):
    made = await server.call("POST", "/tokens", json={"name": "other", "scope": "chat"})
    server.provider.then(say("Hello"), say("Fine"))
    first = await send(server, open_webui_chat(user("Hi"), chat="c"))
    body, headers = open_webui_chat(user("Hi"), assistant("Hello"), user("More"), chat="c")
    second = await server.rest.post(
        "/v1/chat/completions", json=body, headers=headers | {"Authorization": f"Bearer {made['secret']}"}
    )
    assert first.headers["X-Wakeful-Session"] != second.headers["X-Wakeful-Session"]


async def test_side_requests_can_be_refused(settings):
    async with running_server(settings, v1_side_requests="refuse") as server:
        body, headers = open_webui_task("Write a title.")
        refused = await server.rest.post("/v1/chat/completions", json=body, headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "side_requests_off")
    assert "v1_side_requests" in refused.json()["error"]["message"]
