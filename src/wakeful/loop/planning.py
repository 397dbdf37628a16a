"""Planning before work: analysis, reflection where the analysis asks for it, and a plan that steers the run."""

import re
from collections.abc import AsyncGenerator
from typing import Literal, NamedTuple

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from wakeful.core.events import PlanningStatus, PlanReady, RunEvent, TurnThinking
from wakeful.loop.model_call import Reply, ask_quietly
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
