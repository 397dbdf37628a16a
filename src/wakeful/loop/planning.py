"""Planning before work: analysis, reflection where the analysis asks for it, and a plan that steers the run."""

import re
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from wakeful.core.events import PlanningStatus, PlanReady, RunEvent, TurnThinking
from wakeful.core.hub import server_note
from wakeful.core.texts import quote_line
from wakeful.loop.model_call import Reply, ask_quietly
from wakeful.loop.promises import find_promise
from wakeful.loop.state import RunState

MAX_SAID = 20_000  # characters of a phase; the rest is cut off
MAX_STEPS = 20
MAX_STEP = 500  # characters
NO_PLAN = "No usable plan; continuing without one"
_STEP = re.compile(r"^\s*(?:\d{1,3}[.):]|[-*•])\s+(?P<step>\S.*)$", re.MULTILINE)
_UNSURE = re.compile(r"^\W*reflect\W*$", re.IGNORECASE | re.MULTILINE)


class _Phase(NamedTuple):
    number: Literal[1, 2, 3]
    label: str
    question: str


_ANALYSIS = _Phase(
    1,
    "Analysing the task",
    "[Planning 1: analysis] Before you work, think about what was just asked of you: what is wanted, what you know, "
    "what you must find out, which of your tools will help. Call no tool now. If something could make a plan fail and "
    "needs a second look, end with a line that says only REFLECT.",
)
_REFLECTION = _Phase(
    2,
    "Reflecting on the analysis",
    "[Planning 2: reflection] Look at your analysis once more: what is wrong or missing in it, and what follows? "
    "Call no tool now.",
)
_PLAN = _Phase(
    3,
    "Making the plan",
    f"[Planning 3: plan] Now write the plan: a numbered list of at most {MAX_STEPS} short steps, each something you "
    "can do with your tools or say. Answer with the list alone. Call no tool now.",
)


async def plan(state: RunState, request: list[ModelMessage]) -> AsyncGenerator[RunEvent]:
    """Make the plan of a run. `request` is the request without planning.

    Each phase is saved, so that planning resumes there after a crash.
    """
    done = {message.data["phase"]: message.content for message in state.own("planning") if message.data is not None}
    talk = list(request)
    for phase in (_ANALYSIS, _REFLECTION, _PLAN):
        if phase is _REFLECTION and not _UNSURE.search(done[1]):
            continue
        talk.append(ModelRequest(parts=[UserPromptPart(content=phase.question)]))
        if phase.number not in done:
            if state.stop.is_requested or await state.is_spent():
                return
            yield PlanningStatus(phase=phase.number, label=phase.label)
            reply = Reply(MAX_SAID)
            async for event in ask_quietly(state, talk, reply):
                yield event
            if reply.thinking:
                yield TurnThinking(thinking=reply.thinking)
            if phase is _PLAN:
                steps = _steps(reply.text)
                yield PlanReady(plan=steps) if steps else PlanningStatus(phase=3, label=NO_PLAN)
                yield state.step("plan", steps)
                return
            done[phase.number] = reply.text
            yield state.step("planning", reply.text, {"phase": phase.number, "thinking": reply.thinking})
        talk.append(ModelResponse(parts=[TextPart(content=done[phase.number] or "(nothing)")]))


def _steps(text: str) -> str:
    """Return the list in a planner's answer as numbered lines; empty if there is none."""
    found = [match["step"].strip()[:MAX_STEP] for match in _STEP.finditer(text)]
    return "\n".join(f"{number}. {step}" for number, step in enumerate(found[:MAX_STEPS], start=1))


# Reminds a model that promises later work without booking it: "I'll check again in 20 minutes".
#
# The reminder is a step of the transcript. The answer before it is saved with the promise, so after a crash between the
# two the reminder follows, and after a later one it is not repeated.


BOOKING = {"recall": "schedule_recall", "scheduler": "scheduler", "next_run": "schedule_next_run"}  # by toolset


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A promise in the answer of a run, or in the one before, that no booking keeps."""

    sentence: str
    may_remind: bool


async def check_promise(state: RunState, text: str) -> Promise | None:
    """Return the promise that nothing keeps, if an answer or the one before the reminder has made one."""
    if not state.deps.asks_for_promises or state.depth > 0 or not _booking_tools(state):
        return None
    was_reminded = state.has_notice("promise")
    sentence = _open_promise(state) if was_reminded else find_promise(text)
    if sentence is None or await _is_kept(state):
        return None
    has_turns = state.turns < state.briefing.agent.max_iterations
    return Promise(sentence=sentence, may_remind=not was_reminded and has_turns and not await state.is_spent())


def remind_of_promise(state: RunState, sentence: str) -> Generator[RunEvent]:
    """Ask the model to book what it has promised."""
    tools = " or ".join(_booking_tools(state))
    text = (
        "[From the server, not from your user] Your answer promises later work, but nothing is "
        f"booked, so you will not wake for it. The sentence, as data: {quote_line(sentence)}. Book it now with "
        f"{tools}, or tell your user that you will not do it by yourself. Do not repeat the rest of your answer."
    )
    yield server_note("promise")
    yield state.step("notice", text, {"note": "promise"})


def resume_promise(state: RunState) -> Generator[RunEvent]:
    """Give the reminder that a crash has prevented."""
    sentence = _open_promise(state)
    if sentence is not None and not state.has_notice("promise"):
        yield from remind_of_promise(state, sentence)


def _open_promise(state: RunState) -> str | None:
    promises = [(message.data or {}).get("promise") for message in state.own("assistant")]
    return next((promise for promise in promises if promise is not None), None)


def _booking_tools(state: RunState) -> list[str]:
    """Return the tools that the model can book a wake with; none while the agent's self-scheduling is off."""
    if state.abilities.tool_calls == "none":
        return []
    return [tool for tool in BOOKING.values() if tool in state.tools]


async def _is_kept(state: RunState) -> bool:
    """Return whether this run has booked a wake, or one is pending for the agent in this session."""
    for message in state.own("tool"):
        data = message.data or {}
        is_creating = data.get("tool") != "scheduler" or data.get("args", {}).get("op") == "create"
        if data.get("success") and data.get("tool") in BOOKING.values() and is_creating:
            return True
    return await state.deps.is_awaited(state.run, state.briefing.agent.id)
