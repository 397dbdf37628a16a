"""The server is killed during planning, during subagents' runs and during compaction, and started again."""

import asyncio
import json
from typing import Any

import pytest

from crash.server_process import HALF, INTERRUPTED, Conversation, Start, check_stream, results, told
from openai_server import Answer, Exchange, OpenAIServer, call, calls, refuse, say, stream, text, usage
from wakeful.core.texts import quote_block

pytestmark = pytest.mark.crash

PLAN = "1. Look\n2. Say what is there"
LONG = "All work and no play. " * 300  # about 2,200 tokens by our guess


def kinds(frames: list[dict[str, Any]]) -> list[str]:
    return [frame["type"] for frame in frames if frame["type"] != "stream_delta"]


async def _has_asked(provider: OpenAIServer, times: int) -> bool:
    return len(provider.requests) >= times


# ── Planning ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_killed_while_it_plans_it_plans_on_where_it_was(talking: Start) -> None:
    script = (stream(*text("It is clear."), usage(100, 10)), HALF, say(PLAN), say("Nothing there."))
    async with talking(*script) as (talk, provider):
        await talk.change_agent(planning=True)
        run_id = await talk.say("Look around.")
        await talk.wait_until(lambda: _is_at_phase(talk, run_id, 3))
        await talk.wait_until(lambda: _has_asked(provider, 2))
        await talk.served.kill()
        await talk.served.start()
        run = await talk.wait_for_end(run_id)
        assert (run["status"], run["attempt"]) == ("success", 2)
        assert ("assistant", "It is clear.") in told(provider, 2), "the analysis was made again"
        assert run["usage"]["input_tokens"] == 100 + 12 + 12
        frames = await talk.frames(run_id)
        check_stream(frames)
        phases = [frame["phase"] for frame in frames if frame["type"] == "planning_status"]
        assert phases == [1, 3, 3]
        assert [role for role, _ in await talk.messages()] == ["user", "planning", "plan", "assistant"]


async def _is_at_phase(talk: Conversation, run_id: str, phase: int) -> bool:
    return any(frame.get("phase") == phase for frame in await talk.frames(run_id))


async def test_a_plan_survives_and_is_not_made_again(talking: Start) -> None:
    async with talking(say("It is clear."), say(PLAN), HALF, say("Nothing there.")) as (talk, provider):
        await talk.change_agent(planning=True)
        run_id = await talk.say("Look around.")
        await talk.wait_for_frame(run_id, "stream_delta")
        await talk.served.kill()
        await talk.served.start()
        run = await talk.wait_for_end(run_id)
        assert (run["status"], run["attempt"]) == ("success", 2)
        frames = await talk.frames(run_id)
        check_stream(frames)
        assert kinds(frames).count("plan_ready") == 1
        assert quote_block(PLAN) in provider.requests[3].body["messages"][0]["content"]


# ── Subagents ───────────────────────────────────────────────────────────────────────────────────────────────────────


def give(task: str, number: int, call_id: str) -> list[dict[str, Any]]:
    return call("spawn_agent", json.dumps({"agent": "Wakeful", "task": task}), index=number, id=call_id)


class Cast:
    """A provider's answers, by the task that stands in the request; a task that is given on goes one level deeper."""

    def __init__(self) -> None:
        self.script: dict[str, list[Answer]] = {
            "Have all done.": [
                calls(*give("Quick", 0, "quick"), *give("Slow", 1, "slow"), *give("Passed on", 2, "passed")),
                say("I know what is left."),
            ],
            "Quick": [stream(*text("Quickly done."), usage(50, 5))],
            "Slow": [self._stay("Slow")],
            "Passed on": [calls(*give("Quick below", 0, "quick"), *give("Slow below", 1, "slow"))],
            "Quick below": [stream(*text("Done below."), usage(30, 3))],
            "Slow below": [self._stay("Slow below")],
        }
        self.stays = {"Slow": asyncio.Event(), "Slow below": asyncio.Event()}

    def _stay(self, task: str) -> Answer:
        async def answer(exchange: Exchange) -> None:
            self.stays[task].set()
            await HALF(exchange)

        return answer

    async def __call__(self, exchange: Exchange) -> None:
        script = self.script[exchange.request.body["messages"][1]["content"]]
        await (script.pop(0) if script else refuse(400, "Nobody should do this again."))(exchange)


async def test_killed_while_subagents_work_the_parent_goes_on_with_what_is_finished(talking: Start) -> None:
    cast = Cast()
    async with talking(always=cast) as (talk, provider):
        run_id = await talk.say("Have all done.")
        for stay in cast.stays.values():
            await asyncio.wait_for(stay.wait(), 20)
        await talk.wait_until(lambda: _is_kept(talk, "tool", "Quickly done."))
        await talk.wait_until(lambda: _is_kept(talk, "subagent", "Done below."))
        await talk.served.kill()
        await talk.served.start()
        run = await talk.wait_for_end(run_id)
        assert (run["status"], run["attempt"]) == ("success", 2)
        heard = results(provider)
        assert heard["quick"] == "Quickly done."
        assert INTERRUPTED.search(heard["slow"])
        assert INTERRUPTED.search(heard["passed"]), "what was finished below it is nothing whole"
        frames = await talk.frames(run_id)
        check_stream(frames)
        outcomes = {f["call_id"]: f["success"] for f in frames if f["type"] == "tool_call" and not f["is_subagent"]}
        assert outcomes == {"quick": True, "slow": False, "passed": False}
        assert run["usage"]["input_tokens"] >= 80, "what the finished ones used is forgotten"
        assert (await talk.messages())[-1] == ("assistant", "I know what is left.")


async def _is_kept(talk: Conversation, role: str, content: str) -> bool:
    return (role, content) in await talk.messages()


# ── Compression ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_killed_while_it_makes_room_it_makes_room_and_answers(talking: Start) -> None:
    script = [stream(*text(word)) for word in ("One.", "Two.", "Three.")]
    script += [HALF, say("They asked four things."), HALF, say("Four."), say("Five.")]
    async with talking(*script, WAKEFUL_CONTEXT_WINDOW="10000") as (talk, provider):
        await talk.change_agent(toolsets=["files"])
        for number in range(3):
            await talk.wait_for_end(await talk.say(f"Question {number}. {LONG}"))
        run_id = await talk.say(f"Question 3. {LONG}")
        await talk.wait_for_frame(run_id, "compression_started")
        await talk.wait_until(lambda: _has_asked(provider, 4))
        await talk.served.kill()  # in the middle of the summary: it is made again
        await talk.served.start()
        await talk.wait_for_frame(run_id, "stream_delta")
        await talk.served.kill()  # after it: it is used
        await talk.served.start()
        run = await talk.wait_for_end(run_id)
        assert (run["status"], run["attempt"]) == ("success", 3)
        frames = await talk.frames(run_id)
        check_stream(frames)
        assert (kinds(frames).count("compression_started"), kinds(frames).count("context_compressed")) == (2, 1)
        assert told(provider, 5) == told(provider, 6)
        assert told(provider, 6)[0][1].endswith("They asked four things.")
        saved = await talk.messages()
        assert [role for role, _ in saved] == ["user", "assistant"] * 3 + ["user", "summary", "assistant"]
        assert saved[0] == ("user", f"Question 0. {LONG}")
        await talk.wait_for_end(await talk.say("And the last?"))
        assert told(provider)[0][1].endswith("They asked four things.")
