"""Reminds a model that promises later work without booking it: "I'll check again in 20 minutes".

The reminder is a step of the transcript. The answer before it is saved with the promise, so after a crash between the
two the reminder follows, and after a later one it is not repeated.
"""

from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime

from wakeful.core.events import RunEvent
from wakeful.core.frames import server_note
from wakeful.core.texts import quote_line
from wakeful.core.zones import load_zone
from wakeful.loop.promises import find_future_time, find_promise
from wakeful.loop.state import RunState

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
    sentence = _kept_open(state) if was_reminded else find_promise(text) or find_future_time(text, _local_time(state))
    if sentence is None or await _is_kept(state):
        return None
    has_turns = state.turns < state.briefing.agent.max_iterations
    return Promise(sentence=sentence, may_remind=not was_reminded and has_turns and not await state.is_spent())


def remind_of_promise(state: RunState, sentence: str) -> Generator[RunEvent]:
    """Ask the model to book what it has promised."""
    tools, is_certain = " or ".join(_booking_tools(state)), find_promise(sentence) is not None
    what = "promises later work" if is_certain else "names a time to come"
    otherwise = "tell your user that you will not do it by yourself. Do not repeat the rest of your answer."
    text = (
        f"[From the server, not from your user] Your answer {what}, but nothing is booked, so you will not wake for "
        f"it. The sentence, as data: {quote_line(sentence)}. Book it now with {tools}, or "
        + (otherwise if is_certain else "give your answer again if there is nothing for you to do then.")
    )
    yield server_note("promise")
    yield state.step("notice", text, {"note": "promise"})


def resume_promise(state: RunState) -> Generator[RunEvent]:
    """Give the reminder that a crash has prevented."""
    sentence = _open_promise(state)
    if sentence is not None and not state.has_notice("promise"):
        yield from remind_of_promise(state, sentence)


def _kept_open(state: RunState) -> str | None:
    """Return the promise that the model was reminded of. A future time alone is none: the model has decided."""
    sentence = _open_promise(state)
    return sentence if sentence is not None and find_promise(sentence) is not None else None


def _local_time(state: RunState) -> datetime:
    return state.deps.clock.now().astimezone(load_zone(state.briefing.agent.zone))


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
