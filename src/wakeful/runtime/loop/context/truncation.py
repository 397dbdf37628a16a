"""Notice a provider that has dropped part of a prompt: it counted far fewer tokens than were sent.

Local servers do this without an error when a prompt is longer than their window.
"""

import logging
from collections.abc import Iterable, Sequence

from pydantic_ai.messages import ModelMessage, ModelRequest, ToolCallPart

from wakeful.domain.errors import StoreUnavailable
from wakeful.runtime.loop.run_state import RunState
from wakeful.tools.registry import Tool

log = logging.getLogger(__name__)

# No language has more characters per token than about 5 on average; a count below this is not of the whole prompt.
CHARACTERS_PER_TOKEN = 6
# A shorter prompt is never cut: no server has a window below 2,048 tokens, and one that reports less counts only what
# its cache did not have.
MIN_COUNTED = 1_000


def is_cut(sent: int, counted: int) -> bool:
    """Return whether a provider that counted this number of tokens cannot have read the characters that were sent."""
    return MIN_COUNTED <= counted < sent // CHARACTERS_PER_TOKEN


def size_of(messages: Sequence[ModelMessage], tools: Iterable[Tool]) -> int:
    """Return how many characters of text a request has."""
    size = sum(len(tool.description) + len(str(tool.schema)) for tool in tools)
    for message in messages:
        size += len(message.instructions or "") if isinstance(message, ModelRequest) else 0
        for part in message.parts:
            content = part.args_as_json_str() if isinstance(part, ToolCallPart) else getattr(part, "content", "")
            size += len(content) if isinstance(content, str) else 0
    return size


async def note_cut(state: RunState, sent: int, counted: int) -> None:
    """Log that a prompt was cut, and add a notice, once a day for each agent and model."""
    fields = {"run_id": state.run.id, "model": state.model, "characters": sent, "counted": counted}
    log.warning("provider counted far fewer tokens than were sent", extra=fields)
    try:
        await state.deps.notices.add_prompt_cut(state.run, state.model, sent // CHARACTERS_PER_TOKEN, counted)
    except StoreUnavailable as error:  # the run goes on
        log.warning("notice not added", extra={"problem": error.message})
