"""The server killed between an answer and its own reply to it: nothing is said twice, and nothing is left out."""

import json
from typing import Any

import pytest

from crash.kill_points import die_with_a_promise_saved, die_with_a_result_saved, die_with_the_reminder_saved
from crash.server_process import Conversation, Start
from openai_server import call, calls, say, stream, text, usage

pytestmark = pytest.mark.crash

PROMISE = stream(*text("It still runs. ", "I'll check again in 20 minutes."), usage(100, 10))
BRIEF = {"call_type": "once", "when": "20 minutes", "additional_context_message": "Look at /tmp/build.log again."}
BOOK = calls(*call("schedule_recall", json.dumps(BRIEF), id="b1"))
on_sqlite = pytest.mark.parametrize("backend_settings", ["sqlite"], indirect=True)


async def start_again(talk: Conversation, run_id: str) -> dict[str, Any]:
    await talk.served.wait_until_killed()
    await talk.served.start()
    return await talk.wait_for_end(run_id)


@on_sqlite
@pytest.mark.parametrize("aim", [die_with_a_promise_saved, die_with_the_reminder_saved])
async def test_killed_around_the_reminder_of_a_promise_it_is_given_once(talking: Start, aim: Any) -> None:
    async with talking(PROMISE, BOOK, say("Booked."), prepare=aim) as (talk, provider):
        run_id = await talk.say("How is the build?")
        run = await start_again(talk, run_id)
        assert (run["status"], run["note"], run["usage"]["model_calls"]) == ("success", None, 3)
        assert [role for role, _ in await talk.messages()].count("notice") == 1
        asked = [json.dumps(request.body["messages"]).count("nothing is booked") for request in provider.requests]
        assert asked == [0, 1, 1]
        frames = await talk.frames(run_id)
        assert [frame["type"] for frame in frames].count("stream_end") == 1
        assert [frame["code"] for frame in frames if frame["type"] == "server_note"] == ["promise"]


@on_sqlite
async def test_killed_after_more_tools_the_same_ones_are_shown(talking: Start) -> None:
    unfold = calls(*call("more_tools", json.dumps({"names": ["db_query"]}), id="m1"))
    script = (unfold, say("Fine."))
    async with talking(*script, prepare=die_with_a_result_saved, WAKEFUL_CONTEXT_WINDOW="8192") as (talk, provider):
        run_id = await talk.say("Look into your data")
        assert (await start_again(talk, run_id))["status"] == "success"
        first, second = ({tool["function"]["name"] for tool in each.body["tools"]} for each in provider.requests)
        assert second - first == {"db_query"}
        assert [role for role, _ in await talk.messages()].count("tool") == 1
