"""Subagents: another agent does one task within the same run. The parent gets only its answer."""

import logging
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from wakeful.core.errors import Invalid, LimitReached, StoreUnavailable, WakefulError
from wakeful.core.events import (
    EndedEarly,
    RunEvent,
    StepSaved,
    StreamDelta,
    StreamEnd,
    ThinkingDelta,
    ThinkingEnd,
    TurnThinking,
    WorkerFrame,
)
from wakeful.core.labels import SCHEDULING
from wakeful.core.types import Agent, Message
from wakeful.loop.following import Say
from wakeful.loop.state import RunState
from wakeful.toolbox.registry import ToolResult

log = logging.getLogger(__name__)

_CALL = ("call_id", "tool", "args", "success", "metadata")
_KEPT = ("thinking", "tool_calls", *_CALL, "phase", "note", "remark", "cut_off")


class NoSuchHelper(Invalid):
    code = "no_such_subagent"

    def __init__(self, asked: str, names: list[str]) -> None:
        known = ", ".join(map(repr, names)) or "none"
        super().__init__(f"There is no agent {asked!r} that you may give a task to. There are: {known}.")


class TooManySubagents(LimitReached):
    code = "too_many_subagents"

    def __init__(self, most: int) -> None:
        super().__init__(f"This run has used its limit of {most} subagents. Do the rest yourself.")


async def spawn(parent: RunState, subagent_id: str, say: Say, asked: str, task: str) -> ToolResult:
    """Let another agent do a task, and return its answer."""
    helper = _find(parent, asked)
    most = parent.deps.subagents.per_run
    if parent.spending.subagents >= most:
        raise TooManySubagents(most)
    parent.spending.subagents += 1
    state = _begin(parent, helper, task)
    state.subagent_id = subagent_id if parent.subagent_id is None else f"{parent.subagent_id}.{subagent_id}"
    translator = _Translator(parent, helper, subagent_id)
    await say(translator.keep(StepSaved(role="user", content=task)))
    metadata: dict[str, Any] = {"subagent_id": subagent_id, "agent_id": helper.id, "agent": helper.name}
    try:
        with parent.deps.tracing.agent(helper):
            async with aclosing(parent.deps.take_turns(state)) as events:
                async for event in events:
                    translated = translator.translate(event)
                    if translated is not None:
                        await say(translated)
    except StoreUnavailable:
        raise  # the whole run waits for the store, or is released
    except WakefulError as error:
        log.warning("subagent failed", extra={"run_id": parent.run.id, "code": error.code, "error": error.message})
        text = f"The agent {helper.name!r} failed: {error.message}"
        return ToolResult(text=text, success=False, metadata={**metadata, "code": error.code})
    if translator.answer is None:
        text = f"The agent {helper.name!r} was stopped before it had an answer."
        return ToolResult(text=text, success=False, metadata={**metadata, "code": "stopped"})
    return _result(helper.name, metadata, translator.answer, translator.reason)


def saved_result(parent: RunState, subagent_id: str) -> ToolResult | None:
    """Return the result of a call whose subagent had saved its final answer before a crash."""
    steps: list[Message] = []
    for message in reversed(parent.messages):
        if message.role == "assistant":  # with the calls that have no result yet
            break
        data = message.data or {}
        if message.role == "subagent" and data["subagent_id"] == subagent_id and "within" not in data:
            steps.append(message)
    data = (steps[0].data or {}) if steps else {}
    if data.get("role") != "assistant" or data.get("tool_calls") or data.get("cut_off"):
        return None
    name: str = data["agent"]
    agent_id = next((helper.id for helper in parent.briefing.helpers if helper.name == name), None)
    metadata = {"subagent_id": subagent_id, "agent_id": agent_id, "agent": name}
    return _result(name, metadata, steps[0].content, data.get("note"))


def _result(name: str, metadata: Mapping[str, Any], answer: str, reason: str | None) -> ToolResult:
    if reason is None:
        return ToolResult(text=answer, metadata=metadata)
    text = f"The agent {name!r} ended early ({reason}). Its last output: {answer}"
    return ToolResult(text=text, success=False, metadata={**metadata, "code": reason})


class _Translator:
    """Translates the events and steps of a subagent into those of its parent."""

    def __init__(self, parent: RunState, helper: Agent, subagent_id: str) -> None:
        self._parent = parent
        self._helper = helper
        self._id = subagent_id
        self._thoughts: list[str] = []
        self.answer: str | None = None
        self.reason: str | None = None

    def translate(self, event: RunEvent) -> RunEvent | None:
        """Return the event to pass on: no deltas, thinking in one piece, and every frame marked with the subagent."""
        match event:
            case StepSaved():
                return self.keep(event)
            case ThinkingDelta():
                self._thoughts.append(event.delta)
            case ThinkingEnd():
                thought, self._thoughts = "".join(self._thoughts), []
                return TurnThinking(thinking=thought, is_subagent=True, subagent_id=self._id)
            case StreamEnd():
                self.answer = event.content
            case EndedEarly():
                self.reason = event.reason
            case StreamDelta():
                pass
            case WorkerFrame(is_subagent=False):
                return replace(event, is_subagent=True, subagent_id=self._id)
            case _:
                return event
        return None

    def keep(self, step: StepSaved) -> StepSaved:
        """Save a step in the session's transcript, with a role that is never sent to a model."""
        data = step.data or {}
        if step.role != "subagent":
            about = {"subagent_id": self._id, "agent": self._helper.name, "role": step.role}
            data = about | {key: data[key] for key in _KEPT if key in data}
        else:  # of a nested subagent; its calls may have the same ids as the parent's
            data = {**data, "within": self._id}
        return self._parent.step("subagent", step.content, data)


def _find(parent: RunState, asked: str) -> Agent:
    helpers = parent.briefing.helpers
    for helper in helpers:
        if asked in (helper.id, helper.name):
            return helper
    for helper in helpers:
        if asked.strip().casefold() == helper.name.casefold():
            return helper
    raise NoSuchHelper(asked, [helper.name for helper in helpers])


def _begin(parent: RunState, helper: Agent, task: str) -> RunState:
    """Return the state of a subagent: its own model and prompt, with the parent's workspace and at most its tools."""
    briefing, agent = parent.briefing, parent.briefing.agent
    may_go_on = parent.depth + 1 < parent.deps.subagents.depth
    allowed = set(agent.subagents) & set(helper.subagents) if may_go_on else set[str]()
    worker = replace(
        agent,
        name=helper.name,
        description=helper.description,
        system_prompt=helper.system_prompt,
        model=helper.model,
        thinking_level=helper.thinking_level,
        planning=helper.planning,
        max_iterations=helper.max_iterations,
        ask_before=(*agent.ask_before, *helper.ask_before),
        profiles=(),  # it must not hand over the parent's session
        subagents=tuple(each.id for each in briefing.helpers if each.id in allowed),
    )
    tools = parent.deps.tools
    shown = [tool for tool in tools.catalog.shown_to(helper, None) if tool.name in parent.tools]
    only = [tool.name for tool in shown if tool.toolset not in SCHEDULING]
    return RunState(
        parent.deps,
        parent.run,
        replace(
            briefing,
            agent=worker,
            helpers=[each for each in briefing.helpers if each.id in allowed],
            task_from=agent.name,
            messages=[parent.message("user", task)],
            images={},
            session_config={"tool_ids": only},
        ),
        parent.stop,
        parent.before_call,
        of=parent,
    )
