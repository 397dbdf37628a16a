"""GET /search: the shape of its answer, who may ask, and what it refuses."""

import pytest

from openai_server import say as reply


async def search(server, q, **params):
    return await server.call("GET", "/search", params={"q": q, **params})


async def say(server, session, text):
    """Send a message, and return its id when the answer is saved."""
    await server.learn_schema()
    server.provider.then(reply("Done."))
    async with server.watch(session) as client:
        await client.ask(text)
    return [each["id"] for each in await server.messages(session) if each["content"] == text][-1]


async def test_a_message_is_found_with_its_place_and_a_snippet(server):
    session = await server.session("Plans for the 🌱 garden")
    message_id = await say(server, session, "Water the 🌱 <b>garden</b>\nat noon")
    answer = await search(server, "garden")
    assert answer["index"] == {"is_complete": True, "percent": 100}
    assert "next" not in answer
    title, *_, found = answer["results"]
    assert title["message_id"] is title["run_id"] is title["role"] is None
    assert (title["session_id"], title["snippet"]) == (session, "Plans for the 🌱 garden")
    assert title["matches"] == [[17, 23]]  # JavaScript counts the emoji as two
    [listed] = [each for each in await server.messages(session) if each["id"] == message_id]
    assert found == {
        "session_id": session,
        "session_title": "Plans for the 🌱 garden",
        "agent_id": title["agent_id"],
        "message_id": message_id,
        "run_id": listed["run_id"],
        "role": "user",
        "created_at": listed["created_at"],
        "snippet": "Water the 🌱 <b>garden</b> at noon",
        "matches": [[16, 22]],
    }


@pytest.mark.parametrize("q", ["", "x" * 501, "x" * 10_000])
async def test_a_query_that_is_empty_or_too_long_is_refused_by_name(server, q):
    answer = await server.rest.get("/search", params={"q": q})
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "q")


@pytest.mark.parametrize("q", ["\x00", '"', "🎉", "' OR 1=1 --", "a AND b*", "%", "\\", "(((", "\ud83d"])
async def test_any_other_text_is_searched_for(server, q):
    answer = await server.rest.get("/search", params={"q": q.encode("utf-8", "surrogatepass")})
    assert (answer.status_code, answer.json()["results"]) == (200, [])


@pytest.mark.parametrize("page", ["x", "titles.", "messages.1x", "messages.٣", "messages." + "9" * 19, "runs.1"])
async def test_a_page_that_no_answer_named_is_refused(server, page):
    answer = await server.rest.get("/search", params={"q": "needle", "page": page})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_page")


async def test_the_progress_of_the_index_is_in_the_answer_and_in_storage(server):
    await server.sql("UPDATE search_progress SET messages_before = '0', done = 40, total = 100")
    expected = {"is_complete": False, "percent": 40}
    try:
        assert (await search(server, "needle"))["index"] == expected
        assert (await server.call("GET", "/storage"))["search_index"] == expected
    finally:
        await server.sql("UPDATE search_progress SET messages_before = NULL")
    assert (await search(server, "needle"))["index"] == {"is_complete": True, "percent": 100}
