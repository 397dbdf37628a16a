"""The server killed at the exact moment between a saved final answer and whatever comes after it.

A script that has too few answers for the model's requests fails its test, so each answer is asked for once.
"""

import json
from typing import Any

import pytest

from crash.crash_harness import IS_LONG
from crash.kill_points import (
    die_with_a_subagents_answer_saved,
    die_with_the_answer_saved,
    die_with_the_answer_saved_and_a_stop_requested,
)
from crash.server_process import Conversation, Start, check_stream, results, writes
from openai_server import call, calls, say, stream, text, usage

pytestmark = pytest.mark.crash

# The other aims are kept on both stores: what differs there is what happens to the transaction.
short_on_sqlite = pytest.mark.parametrize(
    "backend_settings", ["sqlite", "postgres"] if IS_LONG else ["sqlite"], indirect=True
)
ANSWER = stream(*text("The whole ", "answer."), usage(100, 10))


async def start_again(talk: Conversation, run_id: str) -> dict[str, Any]:
    await talk.served.wait_until_killed()
    await talk.served.start()
    return await talk.wait_for_end(run_id)


async def check_answered_once(talk: Conversation, run_id: str, answer: str = "The whole answer.") -> None:
    [run] = [each for each in await talk.runs() if each["id"] == run_id]
    assert (run["status"], run["attempt"], run["error"]) == ("success", 1, None)
    assert (await talk.messages()).count(("assistant", answer)) == 1
    frames = await talk.frames(run_id)
    check_stream(frames)
    assert frames[-1]["content"] == answer
    said = "".join(frame["delta"] for frame in frames if frame["type"] == "stream_delta")
    assert said in (answer, "")


@pytest.mark.parametrize("aim", [die_with_the_answer_saved, die_with_the_answer_saved_and_a_stop_requested])
async def test_killed_when_its_answer_was_saved_a_run_has_ended(talking: Start, aim: Any) -> None:
    async with talking(ANSWER, say("Next."), prepare=aim) as (talk, _):
        run_id = await talk.say("Tell me.")
        run = await start_again(talk, run_id)
        await check_answered_once(talk, run_id)
        used = run["usage"]
        assert (used["model_calls"], used["input_tokens"], used["output_tokens"], run["note"]) == (1, 100, 10, None)
        assert (await talk.wait_for_end(await talk.say("And now?")))["status"] == "success"


@pytest.mark.parametrize(("call_type", "status"), [("once", "fired"), ("recurring", "pending")])
async def test_killed_when_a_woken_runs_answer_was_saved_its_wake_has_fired(
    talking: Start, call_type: str, status: str
) -> None:
    async with talking(ANSWER, prepare=die_with_the_answer_saved) as (talk, _):
        booking: dict[str, Any] = {
            "call_type": call_type,
            "when": "1 hour",
            "additional_context_message": "Say how it is.",
        }
        if call_type == "recurring":
            booking["interval_seconds"] = 3600
        await talk.served.send("POST", f"/sessions/{talk.id}/recall", booking)
        run_id = (await talk.served.send("POST", f"/sessions/{talk.id}/recall/run-now", {}))["id"]
        await start_again(talk, run_id)
        await check_answered_once(talk, run_id)
        [wake] = (await talk.served.get("/wakes"))["wakes"]
        assert (wake["status"], [each["id"] for each in await talk.runs()]) == (status, [run_id])


@short_on_sqlite
async def test_killed_when_the_answer_after_an_approval_was_saved_the_run_has_ended(talking: Start) -> None:
    read = call("read_file", json.dumps({"path": "a.txt"}), id="read")
    script = (calls(*writes("a.txt", "once", number=1)), ANSWER, calls(*read), say("It is there."))
    async with talking(*script, prepare=die_with_the_answer_saved) as (talk, provider):
        await talk.change_agent(ask_before=["write_file"])
        run_id = await talk.say("Write it.")
        await talk.wait_for_frame(run_id, "approval_requested")
        await talk.served.send("POST", f"/runs/{run_id}/approvals/call_1", {"approve": True})
        await start_again(talk, run_id)
        await check_answered_once(talk, run_id)
        await talk.wait_for_end(await talk.say("What is in it?"))
        assert results(provider)["read"].splitlines() == ["once"]  # on PostgreSQL no file is on this disk until then


@short_on_sqlite
async def test_killed_when_the_end_at_the_iteration_limit_was_saved_the_run_has_ended(talking: Start) -> None:
    script = (calls(*writes("a.txt", "once", number=1)),)
    async with talking(*script, prepare=die_with_the_answer_saved) as (talk, _):
        await talk.change_agent(max_iterations=1)
        run_id = await talk.say("Write it.")
        run = await start_again(talk, run_id)
        assert (run["note"], run["reason"]) == ("iteration_limit", "iteration_limit")
        [last] = [content for role, content in await talk.messages() if role == "assistant" and content]
        await check_answered_once(talk, run_id, last)


async def test_killed_when_a_subagents_answer_was_saved_the_parent_goes_on_with_it(talking: Start) -> None:
    give = call("spawn_agent", json.dumps({"agent": "Wakeful", "task": "Look."}), id="look")
    script = (calls(*give), stream(*text("I looked."), usage(50, 5)), say("It looked."))
    async with talking(*script, prepare=die_with_a_subagents_answer_saved) as (talk, provider):
        run_id = await talk.say("Have it looked at.")
        run = await start_again(talk, run_id)
        assert (run["status"], run["attempt"], run["usage"]["model_calls"]) == ("success", 2, 3)
        assert results(provider) == {"look": "I looked."}
        assert [content for role, content in await talk.messages() if role == "subagent"] == ["Look.", "I looked."]
        frames = await talk.frames(run_id)
        check_stream(frames)
        assert [f["success"] for f in frames if f["type"] == "tool_call" and not f["is_subagent"]] == [True]
