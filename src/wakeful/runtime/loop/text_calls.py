"""Make the tool calls that a model writes as text, if its server does not recognise them and nobody else wrote them."""

from collections.abc import Iterator

from pydantic_ai.messages import ToolCallPart

from wakeful.domain import ids
from wakeful.domain.runs.text_calls import TextCalls, find_calls, occurs_in
from wakeful.runtime.loop.context.folding import MORE_TOOLS
from wakeful.runtime.loop.run_state import RunState


def has_text_call(state: RunState, text: str) -> bool:
    """Return whether an answer contains a tool call as text."""
    return _find(state, text) is not None


def take_text_calls(state: RunState, text: str) -> list[ToolCallPart]:
    """Return the calls that an answer consists of, to be made like any others.

    None unless the model is known to write its calls as text, the answer is nothing else, and no message or tool result
    contains them: a call that a web page contains and the model quotes must not be made.
    """
    if state.abilities.tool_calls != "text":
        return []
    found = _find(state, text)
    if found is None or not found.is_whole or any(occurs_in(found, text, other) for other in _texts(state)):
        return []
    return [
        ToolCallPart(tool_name=call.tool, args=dict(call.args), tool_call_id=f"call_{ids.new_id()}")
        for call in found.calls
    ]


def _find(state: RunState, text: str) -> TextCalls | None:
    return find_calls(text, [*state.tools, MORE_TOOLS])


def _texts(state: RunState) -> Iterator[str]:
    """Yield what the model may have quoted: all messages but its own answers of earlier runs, and its data."""
    for message in state.messages:
        if message.role != "assistant" or message.run_id == state.run.id:
            yield message.content
    briefing = state.briefing
    yield from briefing.database
    yield from briefing.notes
    yield from (view.text for view in briefing.views)
    yield briefing.agents_file
