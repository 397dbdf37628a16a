"""Call the tools that a model asks for, after asking a person where the agent has to.

A result is saved before the next call is made.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from posixpath import normpath
from typing import Any

from pydantic_ai.messages import ToolCallPart

from wakeful.agents.rules import SWITCH_PROFILE, asks_before
from wakeful.core.errors import Unavailable
from wakeful.core.events import ApprovalAnswered, ApprovalRequested, RunEvent, ToolCall, ToolStarted
from wakeful.core.outside import AskPerson
from wakeful.core.records import HomeTaken
from wakeful.core.texts import to_storable
from wakeful.core.types import ClaimedRun
from wakeful.database.files import AgentFiles
from wakeful.loop.arguments import TooDeep, UnreadableArguments, read_arguments, to_keep
from wakeful.loop.context import INTERRUPTED
from wakeful.loop.following import Followed, Say, Worker, merge_events
from wakeful.loop.state import RunState
from wakeful.loop.subagents import saved_result, spawn
from wakeful.loop.tools import is_more_tools, unfold_tools
from wakeful.runs.executor import RunStopped
from wakeful.store.errors import insist
from wakeful.telemetry.tracing import TOOL_ARGUMENTS, TOOL_RESULT
from wakeful.toolbox.registry import ToolContext, ToolResult

# Ask a person before a tool is called. In a chat the run waits for the answer; a headless run is refused.


@dataclass(slots=True, kw_only=True)
class ApprovalVerdict:
    """The outcome of asking."""

    is_in_doubt: bool  # an earlier attempt may have made the call
    is_stopped: bool = False
    refusal: ToolResult | None = None  # None: it may be called
    approved: str | None = None  # the id of a booking that the call may change


async def ask_person(
    state: RunState,
    call: ToolCallPart,
    args: Mapping[str, Any],
    verdict: ApprovalVerdict,
    about: AskPerson
    | None = None,  # what it would change; None: the agent's settings say that this tool is asked about
) -> AsyncGenerator[RunEvent]:
    """Ask about a call, and fill in the verdict. After a crash the question is asked again, unless it was answered."""
    approvals, tool = state.deps.approvals, call.tool_name
    # Subagents that run in parallel may have calls with the same id.
    call_id = call.tool_call_id if state.subagent_id is None else f"{state.subagent_id}.{call.tool_call_id}"
    agent, server, is_resumed = state.briefing.agent, state.tools[tool].server, verdict.is_in_doubt
    request = None if about is None else about.request
    asked = await insist(
        lambda: approvals.ask(
            state.run, agent, call_id, tool, args, server=server, is_resumed=is_resumed, request=request
        )
    )
    if asked.status == "used":
        return  # the call was started, so it stays in doubt
    verdict.is_in_doubt = False
    if asked.status == "pending":
        yield ApprovalRequested(tool=tool, args=args, call_id=call_id, sentence=asked.sentence, shown=asked.shown)
        try:
            with state.stop.cuts_off():
                asked = await insist(partial(approvals.wait, asked, state.run))
        except RunStopped:
            verdict.is_stopped = True
            return
        yield ApprovalAnswered(tool=tool, call_id=call_id, approved=asked.status == "approved", note=asked.note)
    if asked.status == "approved":
        await insist(partial(approvals.use, asked))
        verdict.approved = None if about is None else about.wake_id
    else:
        verdict.refusal = _refused(tool, asked.note) if asked.status == "denied" else _nobody_there(tool, state.run)


async def waits_for_answer(state: RunState, call: ToolCallPart) -> bool:
    """Return whether an earlier attempt ended while a person was asked about a call, so that it was not made."""
    run = state.run
    asked = await insist(lambda: state.deps.approvals.of_run(run.id, run.user_id))
    return any(each.call_id == call.tool_call_id and each.status in ("pending", "approved") for each in asked)


def _refused(tool: str, note: str | None) -> ToolResult:
    reason = f" They said: {note}" if note else ""
    text = f"Your user was asked and refused this call of {tool}. Nothing was done.{reason}"
    return ToolResult(text=text, success=False, metadata={"code": "denied"})


def _nobody_there(tool: str, run: ClaimedRun) -> ToolResult:
    if run.is_headless:
        text = (
            f"{tool} needs your user's approval each time, and your user is not here. Nothing was done. Your user got "
            "a notice, from which they can approve the call and run it again. Do not retry now: continue without it, "
            "or end."
        )
    else:
        text = (
            f"{tool} needs your user's approval each time, and no page of Wakeful is open where they could give it. "
            "Nothing was done. Do not retry now: continue without it, and say that the user must open the page and "
            "ask again."
        )
    return ToolResult(text=text, success=False, metadata={"code": "needs_approval"})


_AT_ONCE = 4  # parallel calls

_CUT = "your answer reached the model's output limit before the call was complete. Send less at a time."
_NOT_DONE = ToolResult(text=INTERRUPTED, success=False, metadata={"code": "interrupted"})


async def call_all(
    state: RunState, calls: Sequence[ToolCallPart], *, is_first_begun: bool = False
) -> AsyncGenerator[RunEvent]:
    """Call tools one after the other; those that allow it in parallel.

    Each result is saved before the next call, so after a crash only the first call without a result is in doubt, and
    those that ran in parallel with it.
    """
    for number, (is_side_by_side, group) in enumerate(groupby(calls, partial(_is_side_by_side, state))):
        if state.stop.is_requested:
            return
        is_begun = is_first_begun and number == 0
        if is_side_by_side:
            async for event in _call_together(state, list(group), is_begun=is_begun):
                yield event
            continue
        for place, call in enumerate(group):
            if state.stop.is_requested or state.mishaps.reason() is not None:
                return
            verdict = ApprovalVerdict(is_in_doubt=is_begun and place == 0)
            async for event in _ask_first(state, call, verdict):
                yield event
            if verdict.is_stopped:
                return
            yield _started(call)
            while True:
                performing = _follow(state, call, verdict)
                try:
                    async for event in performing.events(state.tasks):
                        yield event
                    break
                except AskPerson as needed:
                    async for event in ask_person(state, call, read_arguments(call), verdict, needed):
                        yield event
                if verdict.is_stopped:
                    return
            result = performing.result
            for event in _note(state, call, result):
                yield event
            if call.tool_name == SWITCH_PROFILE and result.success:
                looking = state.deps.brief(state.run, state.stop)
                async for event in looking.events(state.tasks):
                    yield event
                state.switch_to(looking.result)


def shown(calls: Sequence[ToolCallPart]) -> list[dict[str, Any]]:
    """Return calls in the form that is shown to people."""
    return [{"call_id": call.tool_call_id, "tool": call.tool_name, "args": _as_shown(call)} for call in calls]


def _is_side_by_side(state: RunState, call: ToolCallPart) -> bool:
    tool = state.tools.get(call.tool_name)
    return tool is not None and tool.is_side_by_side


async def _call_together(state: RunState, calls: Sequence[ToolCallPart], *, is_begun: bool) -> AsyncGenerator[RunEvent]:
    async def follow(call: ToolCallPart, say: Say) -> None:
        verdict = ApprovalVerdict(is_in_doubt=is_begun)
        async for event in _ask_first(state, call, verdict):
            await say(event)
        if verdict.is_stopped:
            return
        await say(_started(call))
        result = await _perform(state, call, verdict, say=say)
        for event in _note(state, call, result):
            await say(event)

    workers: list[Worker] = [partial(follow, call) for call in calls]
    async for event in merge_events(workers, state.tasks, at_once=_AT_ONCE):
        yield event


async def _ask_first(state: RunState, call: ToolCallPart, verdict: ApprovalVerdict) -> AsyncGenerator[RunEvent]:
    if call.tool_name not in state.tools:
        return
    if not asks_before(state.briefing.agent, call.tool_name):
        if verdict.is_in_doubt:
            verdict.is_in_doubt = not await waits_for_answer(state, call)
        return
    with suppress(UnreadableArguments):  # it is refused anyway, so no person is asked
        args = to_keep(read_arguments(call))
        async for event in ask_person(state, call, args, verdict):
            yield event


def _follow(state: RunState, call: ToolCallPart, verdict: ApprovalVerdict) -> "Followed[ToolResult]":
    tools, tool = state.deps.tools, state.tools.get(call.tool_name)
    return Followed(
        state.deps.clock, lambda _: _perform(state, call, verdict), partial(tools.catalog.waiting_for_call, tool)
    )


async def _perform(
    state: RunState, call: ToolCallPart, verdict: ApprovalVerdict, *, say: Say | None = None
) -> ToolResult:
    is_known = call.tool_name in state.tools or is_more_tools(call)
    with state.deps.tracing.tool(call.tool_name, call.tool_call_id, is_known=is_known) as span:
        span.show(TOOL_ARGUMENTS, call.args_as_json_str)
        result = await _call(state, call, verdict, say)
        span.show(TOOL_RESULT, lambda: result.text)
        if not result.success:
            span.fail(str(result.metadata.get("code") or "failed"))
        return result


async def _call(state: RunState, call: ToolCallPart, verdict: ApprovalVerdict, say: Say | None) -> ToolResult:
    if is_more_tools(call):
        return unfold_tools(state, call)
    tool = state.tools.get(call.tool_name)
    if verdict.refusal is not None:
        return verdict.refusal
    if verdict.is_in_doubt and not (tool is not None and tool.is_repeatable):
        return saved_result(state, call.tool_call_id) or _NOT_DONE
    try:
        args = read_arguments(call)
    except UnreadableArguments as error:
        text = f"{call.tool_name} was not called: {_CUT}" if state.is_reply_cut else error.message
        return ToolResult(text=text, success=False, metadata={"code": error.code})
    agent = state.briefing.agent
    files = state.deps.agent_files
    if tool is not None and tool.uses_files and not tool.makes_files_at_once:
        await insist(lambda: files.bring_files(agent.id))
    context = ToolContext(
        # After a handover, wakes that the new agent books are its own.
        run=replace(state.run, agent_id=agent.id, outside_sources=state.marks.sources),
        agent=agent,
        workspace=state.deps.workspace_of(agent.id),
        only=tuple(state.tools),
        skills=state.briefing.session_config.get("skills"),
        spawn=None if say is None else partial(spawn, state, call.tool_call_id, say),
        approved=verdict.approved,
    )
    await state.before_call()
    act = partial(state.deps.tools.call, call.tool_name, args, context)
    try:
        if tool is not None and tool.makes_files_at_once:
            path = f"workspace/{normpath(str(args.get('path')))}"
            result = await insist(lambda: files.change_files(agent.id, state.run.id, act, path))
        elif tool is not None and tool.makes_files:
            result = await _call_and_save(files, agent.id, state.run.id, act)
        else:
            result = await insist(act)
    except HomeTaken as error:
        result = ToolResult(text=error.message, success=False, metadata={"code": error.code})
    return replace(result, text=to_storable(result.text))


def _started(call: ToolCallPart) -> ToolStarted:
    return ToolStarted(tool=call.tool_name, args=_as_shown(call), call_id=call.tool_call_id)


async def _call_and_save(
    files: AgentFiles, agent_id: str, run_id: str, act: Callable[[], Awaitable[ToolResult]]
) -> ToolResult:
    """Call a tool that writes files for some time, and save them where other nodes have them too."""
    with files.program(agent_id):
        try:
            result = await insist(act)
        except asyncio.CancelledError:  # what it wrote so far stays, as it does on the disk of an embedded store
            with suppress(Unavailable):
                await files.save_files(agent_id, run_id)
            raise
        conflicts = await insist(lambda: files.save_files(agent_id, run_id))
    lines = [
        f"[{_in_workspace(path)} was changed by another run meanwhile. Your version is {_in_workspace(copy)}.]"
        for path, copy in conflicts.items()
    ]
    return replace(result, text="\n".join([result.text, *lines])) if lines else result


def _in_workspace(path: str) -> str:
    return path.removeprefix("workspace/")


def _note(state: RunState, call: ToolCallPart, result: ToolResult) -> Generator[RunEvent]:
    """Count a call, and yield its frames and the step that saves it."""
    args = _as_shown(call)
    state.spending.count_tool_call()
    is_known = call.tool_name in state.tools
    state.deps.metrics.note_tool_call(call.tool_name, is_known=is_known, is_success=result.success)
    state.mishaps.note(call.tool_name, args, result.text, result.metadata.get("code"))
    yield ToolCall(
        tool=call.tool_name,
        args=args,
        result=result.text,
        success=result.success,
        metadata=result.metadata,
        call_id=call.tool_call_id,
    )
    yield from result.frames
    data = {
        "call_id": call.tool_call_id,
        "tool": call.tool_name,
        "args": args,
        "success": result.success,
        "metadata": dict(result.metadata),
    }
    state.marks.add(result.outside_source)
    # Created last, when it is saved: the transcript here has the same order as the one in the store.
    yield state.step("tool", result.text, data)


def _as_shown(call: ToolCallPart) -> dict[str, Any]:
    try:
        return to_keep(read_arguments(call))
    except TooDeep:
        return {"unreadable": "nested too deeply"}
    except UnreadableArguments:
        return {"unreadable": to_keep(str(call.args))}
