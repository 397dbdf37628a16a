"""Ask a person before a tool is called. In a chat the run waits for the answer; a headless run is refused."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic_ai.messages import ToolCallPart

from wakeful.core.events import ApprovalAnswered, ApprovalRequested, RunEvent
from wakeful.core.outside import AskPerson
from wakeful.core.types import ClaimedRun
from wakeful.loop.state import RunState
from wakeful.runs.executor import RunStopped
from wakeful.store.errors import insist
from wakeful.toolbox.registry import ToolResult


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
