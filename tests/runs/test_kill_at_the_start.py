"""Killed before a run has reached a model or tool call: that spends no attempt, however often it happens."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from crash.crash_harness import IS_LONG
from crash.kill_points import CALLS, die_once_claimed, die_soon_after_a_claim, record_calls
from crash.server_process import FINAL, Conversation, Start
from openai_server import Exchange, say

pytestmark = pytest.mark.crash

KILLS = 200 if IS_LONG else 4
RUNS = 310 if IS_LONG else 8


async def test_killed_each_time_it_is_claimed_a_run_keeps_its_only_attempt(talking: Start) -> None:
    async with talking(say("At last."), prepare=die_once_claimed, WAKEFUL_MAX_ATTEMPTS="1") as (talk, _):
        run_id = await talk.say("Are you there?")
        await talk.served.wait_until_killed()
        await talk.served.start_doomed(die_once_claimed)
        await talk.served.start()
        run = await talk.wait_for_end(run_id)
        assert (run["status"], run["attempt"]) == ("success", 1)
        assert await talk.messages() == [("user", "Are you there?"), ("assistant", "At last.")]


@pytest.mark.skipif(not IS_LONG, reason="takes minutes: WAKEFUL_TEST_LONG=1")
async def test_a_run_that_kills_the_server_before_it_reaches_a_model_is_given_up_with_words(talking: Start) -> None:
    async with talking(say("I am here."), prepare=die_once_claimed) as (talk, _):
        run_id = await talk.say("Die.")
        await talk.served.wait_until_killed()
        for _ in range(49):
            await talk.served.start_doomed(die_once_claimed)
        await talk.served.start()
        run = await talk.wait_for_end(run_id)
        assert (run["status"], run["reason"], run["attempt"]) == ("interrupted", "starts_used_up", 0)
        assert run["error"] == "The process died 50 times before this run reached a model or tool call."
        assert (await talk.wait_for_end(await talk.say("And now?")))["status"] == "success"


async def answer(exchange: Exchange) -> None:
    """Answer after a moment."""
    await asyncio.sleep(0.02)
    await say("Done.")(exchange)


async def test_in_a_crash_loop_no_run_is_given_up_that_never_reached_a_model(talking: Start, tmp_path: Path) -> None:
    async with talking(always=answer, prepare=record_calls) as (talk, _):
        sessions = [await _book(talk, f"Task {number}") for number in range(RUNS)]
        await talk.served.kill()
        for _ in range(KILLS):
            await talk.served.start_doomed(die_soon_after_a_claim)
        await talk.served.start(prepare=record_calls)

        async def are_over() -> bool:
            runs = await _runs(talk)
            return len(runs) == RUNS and all(run["status"] in FINAL for run in runs)

        await talk.wait_until(are_over, seconds=30 + RUNS)
        runs = await _runs(talk)
        reached = Counter((tmp_path / "data" / CALLS).read_text().split())
        print("\nended:", dict(Counter(f"{run['status']} {run['reason']}" for run in runs)))
        print("attempts:", dict(Counter(run["attempt"] for run in runs)))
        print("starts that reached a call:", dict(Counter(reached[run["id"]] for run in runs)))
        for run in runs:
            assert run["status"] == "success" or (run["reason"], run["attempt"]) == ("attempts_used_up", 3)
            assert run["attempt"] <= reached[run["id"]], "a start that reached no call was counted"
        assert len({run["session_id"] for run in runs} & set(sessions)) == RUNS
        for session_id in sessions[:20]:
            said = [each["content"] for each in (await talk.served.get(f"/sessions/{session_id}"))["messages"]]
            assert len(said) == len(set(said)) <= 2


async def _book(talk: Conversation, task: str) -> str:
    """Book a recall for in a moment, in a session of its own."""
    session_id = (await talk.served.send("POST", "/sessions", {"title": task}))["id"]
    booking = {"call_type": "once", "when": "1 second", "additional_context_message": task}
    await talk.served.send("POST", f"/sessions/{session_id}/recall", booking)
    return session_id


async def _runs(talk: Conversation) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    page = await talk.served.get("/runs?limit=200")
    found += page["runs"]
    while page.get("next"):
        page = await talk.served.get(f"/runs?limit=200&page={page['next']}")
        found += page["runs"]
    return found
