"""Runs say what they were about, in every list and in their history; sessions of scheduled runs are a group."""

import pytest

from live_server import eventually
from openai_server import call, calls, say

BRIEF = "Read notes.txt with read_file and say which of the tasks in it are older than a week, the oldest first."
WORDS = "Read notes.txt with read_file and say which of the tasks…"


@pytest.fixture
async def agent(server):
    return (await server.call("GET", "/agents"))["agents"][0]["id"]


async def ended_runs(server, agent, count):
    async def ended():
        runs = (await server.call("GET", "/runs", params={"agent_id": agent}))["runs"]
        return runs if len(runs) == count and all(run["finished_at"] for run in runs) else None

    return await eventually(ended)


async def run_next(server, agent, instructions, **more):
    await server.call("PUT", f"/agents/{agent}/next-run", json={"in_seconds": 0, "instructions": instructions} | more)


async def test_a_run_has_its_label_or_its_first_words_its_brief_and_its_answer(server, agent):
    session = await server.session()
    server.provider.then(calls(*call("list_files", "{}")), say("Nothing is older."), say("You're welcome."), say("Ok."))
    await server.call(
        "POST",
        f"/sessions/{session}/recall",
        json={"call_type": "immediate", "additional_context_message": BRIEF, "internal_comment": "Old tasks"},
    )
    [labelled] = await ended_runs(server, agent, 1)
    assert labelled["about"] == "Old tasks"
    async with server.watch(session) as client:
        await client.ask("Thank you,\nand good night")
    await run_next(server, agent, BRIEF)
    unlabelled, chat, _ = await ended_runs(server, agent, 3)
    assert (unlabelled["about"], chat["about"]) == (WORDS, "Thank you, and good night")
    ran = (await server.call("GET", "/agenda"))["ran"]
    assert [run["about"] for run in ran] == ["Old tasks", chat["about"], WORDS]
    shown = await server.call("GET", f"/runs/{labelled['id']}")
    assert (shown["about"], shown["brief"], shown["answer"]) == ("Old tasks", BRIEF, "Nothing is older.")
    shown = await server.call("GET", f"/runs/{chat['id']}")
    assert (shown["brief"], shown["answer"]) == ("Thank you,\nand good night", "You're welcome.")


async def test_a_run_keeps_the_text_it_was_given_after_an_edit_of_its_wake(server, agent):
    session = await server.session()
    server.provider.then(say("Once."))
    asked = {"call_type": "recurring", "interval_seconds": 36_000, "when": "10h", "additional_context_message": BRIEF}
    made = await server.call("POST", f"/sessions/{session}/recall", json=asked)
    await server.call("POST", f"/wakes/{made['recall']['id']}/run-now")
    [run] = await ended_runs(server, agent, 1)
    changed = {"instructions": "Read other.txt with read_file."}
    await server.call("PATCH", f"/wakes/{made['recall']['id']}", json=changed)
    assert (await server.call("GET", f"/runs/{run['id']}"))["brief"] == BRIEF
    [planned] = (await server.call("GET", "/agenda"))["planned"][:1]
    assert planned["about"] == "Read other.txt with read_file."


async def test_sessions_of_scheduled_runs_have_a_name_and_are_apart_from_conversations(server, agent):
    talk = await server.session("The garden")
    server.provider.then(say("Done."), say("Hello."))
    await run_next(server, agent, BRIEF)
    [run] = await ended_runs(server, agent, 1)

    async def listed(**which):
        found = (await server.call("GET", "/sessions", params=which))["sessions"]
        return {each["id"]: each["title"] for each in found}

    assert await listed(unattended=True) == {run["session_id"]: WORDS}
    assert await listed(unattended=False) == {talk: "The garden"}
    assert len(await listed()) == 2
    async with server.watch(run["session_id"]) as client:
        await client.ask("And now?")
    assert await listed(unattended=True) == {}
    assert set(await listed(unattended=False)) == {talk, run["session_id"]}


async def test_the_history_names_the_agent_and_what_a_run_scheduled(server, agent):
    await server.call("PATCH", f"/agents/{agent}", json={"name": "Gardener"})
    later = '{"in_seconds": 7200, "instructions": "Read notes.txt with read_file."}'
    server.provider.then(calls(*call("schedule_next_run", later)), say("Booked."))
    await run_next(server, agent, BRIEF)
    [run] = await ended_runs(server, agent, 1)
    first = [each["text"] for each in (await server.call("GET", f"/wakes/{run['wake_id']}/why"))["decisions"]]
    assert first[0].startswith("You scheduled it for 2")
    assert [text for text in first if text.startswith("It scheduled “Read notes.txt with read_file.” for 2")]
    assert first[-1].startswith("Done after ")
    [booked] = (await server.call("GET", "/wakes", params={"status": "pending"}))["wakes"]
    [told] = (await server.call("GET", f"/wakes/{booked['id']}/why"))["decisions"]
    assert told["text"].startswith("Gardener scheduled it for 2")
    assert "Requested: “in 7200 s”" in told["text"]
