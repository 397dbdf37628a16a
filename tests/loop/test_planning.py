"""Planning before a run: the request, the frames, the saved plan, and bad answers of a planner."""

import pytest

from live_server import kinds, of_kind
from openai_server import call, calls, refuse, say, stream, text, thinking, usage
from wakeful.core.texts import quote_block

PLAN = "1. Read a.txt\n2. Say what is in it"


@pytest.fixture
async def server(shared_server):
    async with shared_server.as_new_owner() as server:
        await server.change_agent(planning=True)
        yield server


def told(server, which):
    """Return the system prompt of a request, and the other messages."""
    system, *rest = server.provider.requests[which].body["messages"]
    return system["content"], [(message["role"], message["content"]) for message in rest]


async def test_waiting_for_the_planner_is_shown(server, client):
    server.provider.then(refuse(503, "Overloaded"), say("Easy."), say(PLAN), say("Done."))
    frames = await client.ask("Read a.txt to me")
    assert kinds(frames)[:4] == ["stream_start", "planning_status", "waiting", "planning_status"]
    assert frames[-1]["content"] == "Done."


async def test_the_plan_is_made_shown_kept_and_steers_the_work(server, session, client):
    server.provider.then(
        stream(*thinking("What is wanted?"), *text("They want a.txt."), usage(10, 1)),
        stream(*text(f"Here it is:\n{PLAN}"), usage(20, 2)),
        stream(*text("Done."), usage(30, 3)),
    )
    frames = await client.ask("Read a.txt to me")
    assert kinds(frames) == [
        "stream_start",
        "planning_status",
        "turn_thinking",
        "planning_status",
        "plan_ready",
        "stream_delta",
        "stream_end",
    ]
    statuses = of_kind(frames, "planning_status")
    assert [(status["phase"], status["is_subagent"]) for status in statuses] == [(1, False), (3, False)]
    assert all(status["label"] for status in statuses)
    assert of_kind(frames, "turn_thinking")[0]["thinking"] == "What is wanted?"
    assert of_kind(frames, "plan_ready")[0]["plan"] == PLAN
    messages = await server.messages(session)
    assert [(message["role"], message["content"]) for message in messages] == [
        ("user", "Read a.txt to me"),
        ("planning", "They want a.txt."),
        ("plan", PLAN),
        ("assistant", "Done."),
    ]
    assert messages[frames[-1]["message_index"]]["content"] == "Done."
    prompt, rest = told(server, 2)
    assert quote_block(PLAN) in prompt
    assert rest == [("user", "Read a.txt to me")]  # the planning itself is not part of the talk
    spent = (await server.run(frames[0]["run_id"]))["usage"]
    assert (spent["model_calls"], spent["input_tokens"], spent["output_tokens"]) == (3, 60, 6)


async def test_reflection_comes_when_the_analysis_asks_for_it(server, client):
    server.provider.then(say("Not sure.\nREFLECT"), say("It is fine."), say(PLAN), say("Done."))
    frames = await client.ask("Read a.txt to me")
    assert [status["phase"] for status in of_kind(frames, "planning_status")] == [1, 2, 3]
    _, rest = told(server, 2)
    assert [content for role, content in rest if role == "assistant"] == ["Not sure.\nREFLECT", "It is fine."]


async def test_the_plan_of_one_run_is_not_the_plan_of_the_next(server, client):
    server.provider.then(say("Clear."), say(PLAN), say("Done."), say("Clear."), say("- Another thing"), say("Done."))
    await client.ask("First")
    frames = await client.ask("Second")
    assert of_kind(frames, "plan_ready")[0]["plan"] == "1. Another thing"
    prompt, _ = told(server, -1)
    assert "1. Another thing" in prompt
    assert PLAN not in prompt


async def test_planning_that_is_off_costs_nothing(server, client):
    await server.change_agent(planning=False)
    server.provider.then(say("Done."))
    assert kinds(await client.ask("Go on")) == ["stream_start", "stream_delta", "stream_end"]


async def test_a_plan_is_made_once_however_many_turns_the_work_takes(server, client):
    server.provider.then(
        say("Clear."), say(PLAN), calls(*call("list_files", "{}")), calls(*call("list_files", "{}")), say("Done.")
    )
    frames = await client.ask("Go on")
    assert len(of_kind(frames, "plan_ready")) == 1
    assert all(quote_block(PLAN) in told(server, which)[0] for which in (2, 3, 4))


@pytest.mark.parametrize("garbage", ["I would rather not.", "", "{'plan': ["])
async def test_a_planner_that_answers_garbage_is_done_without(server, session, client, garbage):
    server.provider.then(say("Hm."), stream(*text(garbage)), say("Done anyway."))
    frames = await client.ask("Go on")
    assert frames[-1]["content"] == "Done anyway."
    assert of_kind(frames, "plan_ready") == []
    assert "without one" in of_kind(frames, "planning_status")[-1]["label"]


async def test_tools_that_a_planner_calls_are_not_called(server, session, client):
    server.provider.then(
        calls(*call("write_file", '{"path": "a.txt", "content": "x"}')), stream(*text(PLAN)), say("Done.")
    )
    frames = await client.ask("Go on")
    assert of_kind(frames, "tool_call") == []
    assert of_kind(frames, "plan_ready")[0]["plan"] == PLAN


async def test_a_planner_without_end_is_cut_off_and_the_work_goes_on(server, session, client):
    endless = [f"{number}. And then another step\n" for number in range(20_000)]
    server.provider.then(stream(*text(*["Let me see. " * 1_000] * 50)), stream(*text(*endless)), say("Done."))
    frames = await client.ask("Go on")
    assert frames[-1]["content"] == "Done."
    assert of_kind(frames, "plan_ready")[0]["plan"].count("\n") == 19
    assert max(len(message["content"]) for message in await server.messages(session)) <= 20_000
    assert (await server.run(frames[0]["run_id"]))["usage"]["output_tokens"] > 2 * 5_000  # what was cut off counts


async def test_planning_counts_toward_the_budget_and_stops_with_it(server, client):
    await server.change_agent(budgets={"run_tokens": 100})
    server.provider.then(stream(*text("Hm."), usage(90, 20)))
    frames = await client.ask("Go on")
    run = await server.run(frames[0]["run_id"])
    assert (run["status"], run["reason"]) == ("success", "budget")
    assert run["usage"]["model_calls"] == 1


async def test_a_planner_that_fails_fails_the_run_in_its_own_words(server, session, client):
    server.provider.then(refuse(400, "No plans today."), say("Clear."), say(PLAN), say("Done."))
    frames = await client.ask("Go on")
    assert frames[-1]["type"] == "error"
    assert "No plans today." in frames[-1]["message"]
    assert (await client.ask("And now?"))[-1]["content"] == "Done."


async def test_a_stop_reaches_the_planner(server, session, client):
    server.provider.then(stream(*text("Hm"), 30.0))
    await client.say("Go on")
    await client.until("planning_status")
    assert (await server.stop(session))["ok"] is True
    assert (await client.until("stream_stopped"))[-1]["type"] == "stream_stopped"
