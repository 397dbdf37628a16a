"""A run that succeeded but gave no answer, or did nothing at all, says so in every list."""

import pytest

from live_server import eventually
from openai_server import call, calls, chunk, say, stream

NOTHING = stream(chunk({"role": "assistant"}))
LOOK = calls(*call("list_files", "{}"))


@pytest.fixture
async def session(server):
    return await server.session()


async def woken(server, session, **asked):
    """Let a recall wake the agent at once, and return its run when that is over."""
    body = {"call_type": "immediate", "additional_context_message": "Read notes.txt with read_file."} | asked
    wake_id = (await server.call("POST", f"/sessions/{session}/recall", json=body))["recall"]["id"]

    async def ended():
        runs = (await server.call("GET", "/runs", params={"wake_id": wake_id}))["runs"]
        return runs[0] if runs and runs[0]["finished_at"] else None

    return await eventually(ended)


@pytest.mark.parametrize(
    ("script", "note"),
    [
        pytest.param([NOTHING], "did_nothing", id="neither a call nor a word"),
        pytest.param([LOOK, NOTHING], "empty_answer", id="a call, and no answer"),
        pytest.param([stream(chunk({"content": " \n "}))], "did_nothing", id="only whitespace"),
        pytest.param([LOOK, say("Done.")], None, id="an answer"),
    ],
)
async def test_a_woken_run_without_an_answer_succeeds_with_a_note(server, session, script, note):
    server.provider.then(*script)
    run = await woken(server, session)
    assert (run["status"], run["note"]) == ("success", note)


async def test_a_person_who_gets_no_answer_sees_an_empty_one(server, session):
    server.provider.then(NOTHING)
    async with server.watch(session) as client:
        frames = await client.ask("Hello?")
    run = await server.run(frames[0]["run_id"])
    assert (run["status"], run["note"]) == ("success", "empty_answer")


async def test_the_list_of_wakes_tells_how_the_last_run_ended(server, session):
    server.provider.then(NOTHING)
    run = await woken(server, session)
    [wake] = (await server.call("GET", "/wakes"))["wakes"]
    assert (wake["last_run"]["id"], wake["last_run"]["note"]) == (run["id"], "did_nothing")
    assert (await server.call("GET", f"/wakes/{wake['id']}"))["last_run"] == wake["last_run"]
    chain = (await server.call("GET", f"/wakes/{wake['id']}/why"))["decisions"]
    [ended] = [each for each in chain if each["code"] == "success"]
    assert ended["detail"]["note"] == "did_nothing"


async def test_a_run_that_failed_has_no_note(server, session):
    server.provider.then(stream({"error": {"message": "Out of memory."}}, finish=None, done=False))
    run = await woken(server, session)
    assert (run["status"], run["note"]) == ("failed", None)
