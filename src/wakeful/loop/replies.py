"""Act on a reply of the model: make its tool calls, end the run with its answer, or say why there is none."""

from collections.abc import AsyncGenerator, Generator, Mapping
from typing import Any

from pydantic_ai.messages import ToolCallPart

from wakeful.core.events import EndedEarly, RunEvent
from wakeful.core.frames import server_note
from wakeful.core.types import RunNote
from wakeful.loop.model_call import Reply
from wakeful.loop.more_tools import MORE_TOOLS
from wakeful.loop.reminders import check_promise, remind_of_promise
from wakeful.loop.repetition import MAX_BAD_CALLS, without_repeats
from wakeful.loop.state import RunState
from wakeful.loop.tool_calls import call_all, shown
from wakeful.loop.transcript import to_data
from wakeful.models.openai_wire import MAX_CALLS
from wakeful.models.text_calls import has_text_call

NOTES: Mapping[RunNote, str] = {  # of runs that end without an answer of the model
    "iteration_limit": "I stopped here because I reached my limit of model calls for one run.",
    "budget": "I stopped here because my budget is used up.",
    "repeated_calls": "I stopped here because I kept making the same call with the same result.",
    "bad_calls": f"I stopped here because {MAX_BAD_CALLS} tool calls in a row were invalid.",
    "too_many_calls": f"I stopped here because one answer asked for more than {MAX_CALLS} tool calls. None was made.",
    "answer_too_long": "I stopped here because my answer was too long.",
    "output_limit": "I stopped here because my answer reached the model's output limit.",
    "repeated_text": "I stopped here because I kept repeating the same text.",
    "empty_answer": "I ended without an answer.",
    "did_nothing": "I was woken and did nothing.",
    "unkept_promise": "I promised to do something later, and booked nothing.",
}


async def act_on(state: RunState, reply: Reply) -> AsyncGenerator[RunEvent]:
    """Save a reply and make its tool calls, or end the run."""
    state.turns += 1
    assert reply.whole is not None
    calls = [part for part in reply.whole.parts if isinstance(part, ToolCallPart)]
    state.is_reply_cut = reply.has_hit_limit
    remark = _remark_on_request(state, reply)
    if remark:
        yield server_note("prompt_cut")
    if reply.is_cut_off or (reply.has_hit_limit and not calls):
        for event in _end_cut_off(state, reply, remark):
            yield event
    elif not calls and not reply.text.strip():
        for event in end_early(state, await _why_empty(state)):
            yield event
    elif calls:
        yield state.step("assistant", reply.text, to_data(reply.whole, reply.thinking, shown(calls)) | remark)
        async for event in call_all(state, calls):
            yield event
    else:
        async for event in _answer(state, reply.text, to_data(reply.whole, reply.thinking, ()) | remark):
            yield event


def _remark_on_request(state: RunState, reply: Reply) -> dict[str, Any]:
    """Return the remark that the provider dropped a part of the request, once in a run."""
    return {"remark": "prompt_cut"} if reply.is_prompt_cut and not state.was_prompt_cut else {}


def end_early(state: RunState, reason: RunNote) -> Generator[RunEvent]:
    """End a run with a note instead of an answer."""
    state.has_ended = True
    yield state.step("assistant", NOTES[reason], {"note": reason}, is_last=True)
    yield EndedEarly(reason=reason)
    yield state.end(NOTES[reason])


async def _answer(state: RunState, text: str, data: dict[str, Any]) -> AsyncGenerator[RunEvent]:
    """End the run with an answer. If it promises later work without a booking, first remind the model, once."""
    remark: RunNote | None = "call_as_text" if has_text_call(text, [*state.tools, MORE_TOOLS]) else None
    promise = None if remark else await check_promise(state, text)
    if promise is not None and promise.may_remind:
        yield state.step("assistant", text, data | {"promise": promise.sentence})
        for event in remind_of_promise(state, promise.sentence):
            yield event
        return
    if promise is not None:
        remark = "unkept_promise"
    state.has_ended = True
    if remark is not None:
        data = {"remark": remark} | data  # a cut prompt may be the cause, so that remark stays
        yield server_note(remark)
    yield state.step("assistant", text, data, is_last=True)
    if remark is None and state.was_prompt_cut and state.depth == 0:  # a subagent's answer counts all the same
        remark = "prompt_cut"
    if remark is not None:
        yield EndedEarly(reason=remark)
    yield state.end(text)


def _end_cut_off(state: RunState, reply: Reply, remark: Mapping[str, Any]) -> Generator[RunEvent]:
    """End a run whose reply was not read to its end, and keep the text so far, marked as incomplete."""
    text = without_repeats(reply.text) if reply.is_repeating else reply.text
    if text:
        yield state.step("assistant", text, {"cut_off": True, **remark})
    reason: RunNote = "too_many_calls"
    if reply.is_repeating:
        reason = "repeated_text"
    elif reply.is_too_long:
        reason = "answer_too_long"
    elif not reply.has_too_many_calls:
        reason = "output_limit"
    yield from end_early(state, reason)


async def _why_empty(state: RunState) -> RunNote:
    if _has_done_nothing(state):
        return "did_nothing"
    return "empty_answer" if await check_promise(state, "") is None else "unkept_promise"


def _has_done_nothing(state: RunState) -> bool:
    """Return whether a woken run has neither called a tool nor written text, in any attempt."""
    own = [message for message in state.own("assistant") if "preloaded" not in (message.data or {})]
    return state.briefing.wake is not None and state.depth == 0 and not own
