"""Calling the tools that a model asks for. Each result is saved before the next call."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import ToolCallPart

from wakeful.domain.agents import asks_before
from wakeful.domain.events import RunEvent, ToolCall, ToolStarted
from wakeful.domain.profiles import SWITCH_PROFILE
from wakeful.runtime.approving import Verdict, ask_person
from wakeful.runtime.transcript import INTERRUPTED
from wakeful.runtime.work import Work, keepable
from wakeful.tools.registry import ToolContext, ToolResult


async def call_all(
    work: Work, calls: Sequence[ToolCallPart], *, is_first_begun: bool = False
) -> AsyncGenerator[RunEvent]:
    """Call tools one after the other. Each result is saved before the next call, so after a crash at most one
    call is in doubt: the first without a result.
    """
    for number, call in enumerate(calls):
        if work.stop.is_requested:
            return
        async for event in _call(work, call, is_in_doubt=is_first_begun and number == 0):
            yield event


def shown(calls: Sequence[ToolCallPart]) -> list[dict[str, Any]]:
    """Return calls as people are shown them."""
    return [{"call_id": call.tool_call_id, "tool": call.tool_name, "args": _arguments(call) or {}} for call in calls]


async def _call(work: Work, call: ToolCallPart, *, is_in_doubt: bool) -> AsyncGenerator[RunEvent]:
    args = _arguments(call)
    tool = work.tools.get(call.tool_name)
    as_shown = args if args is not None else {"unreadable": str(call.args)}
    verdict = Verdict(is_in_doubt=is_in_doubt)
    if args is not None and tool is not None and asks_before(work.briefing.agent, tool.name):
        async for event in ask_person(work, call, args, verdict):
            yield event
        if verdict.is_stopped:
            return
    yield ToolStarted(tool=call.tool_name, args=as_shown, call_id=call.tool_call_id)
    if verdict.refusal is not None:
        result = verdict.refusal
    elif verdict.is_in_doubt and not (tool is not None and tool.is_repeatable):
        result = ToolResult(text=INTERRUPTED, success=False, metadata={"code": "interrupted"})
    elif args is None:
        text = f"{call.tool_name} was not called: its arguments are not a JSON object."
        result = ToolResult(text=text, success=False, metadata={"code": "bad_arguments"})
    else:
        result = await work.means.tools.call(call.tool_name, args, _context(work))
        result = replace(result, text=keepable(result.text))
    work.budget.count_tool_call()
    work.is_stuck = work.repeated.note(call.tool_name, as_shown, result.text)
    yield ToolCall(
        tool=call.tool_name,
        args=as_shown,
        result=result.text,
        success=result.success,
        metadata=result.metadata,
        call_id=call.tool_call_id,
    )
    for frame in result.frames:
        yield frame
    data = {
        "call_id": call.tool_call_id,
        "tool": call.tool_name,
        "args": as_shown,
        "success": result.success,
        "metadata": dict(result.metadata),
    }
    yield work.step("tool", result.text, data)
    if call.tool_name == SWITCH_PROFILE and result.success:
        work.take_on(await work.means.brief())


def _context(work: Work) -> ToolContext:
    agent = work.briefing.agent
    # What another agent books after the session was handed over to it is its own.
    run = work.run if work.run.agent_id == agent.id else replace(work.run, agent_id=agent.id)
    return ToolContext(
        run=run,
        agent=agent,
        workspace=work.means.workspace_of(agent.id),
        only=work.only,
        skills=work.briefing.session_config.get("skills"),
    )


def _arguments(call: ToolCallPart) -> dict[str, Any] | None:
    try:
        return call.args_as_dict(raise_if_invalid=True)
    except (ValueError, AssertionError):  # what the model wrote is not a JSON object
        return None
