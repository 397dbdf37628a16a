"""The part of a transcript that a model is sent, with an estimate of its tokens, as messages of a request.

The transcript itself is append-only and stays whole. Replies of the model are converted to what is saved.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from wakeful.core.errors import StoreUnavailable
from wakeful.core.texts import quote_own_brief
from wakeful.core.types import Message
from wakeful.loop.arguments import keepable_call
from wakeful.loop.briefing import ImageBytes
from wakeful.loop.state import RunState
from wakeful.toolbox.registry import Tool

SENT = ("user", "assistant", "tool", "notice")  # not plans, summaries and the steps of subagents
BYTES_PER_TOKEN = 3  # a safe estimate for most languages; a provider's own count takes precedence
IMAGE_TOKENS = 1_500
MAX_OF_ONE = 0.2  # of the window: a longer message is sent without its middle
DROPPED = "[This result was left out to save space. Call the tool again if you need it.]"
BEFORE = "[Summary of the conversation so far, written by a model to save space]\n"


def tokens_in(text: str) -> int:
    return len(text.encode()) // BYTES_PER_TOKEN + 1


def tokens_of(message: Message) -> int:
    """Estimate the tokens of a message."""
    data = message.data or {}
    calls = data.get("tool_calls", ())
    return tokens_in(message.content) + sum(
        [tokens_in(str(call["args"])) for call in calls] + [IMAGE_TOKENS for _ in data.get("images", ())]
    )


def shorten(text: str, most_tokens: int) -> str:
    """Return a text without its middle if it is too long."""
    tokens = tokens_in(text)
    if tokens <= most_tokens:
        return text
    kept = max(0, int(len(text) * most_tokens / tokens) - 100)
    tail = kept // 4
    left_out = f"\n[… {len(text) - kept:,} characters left out to save space …]\n"
    return text[: kept - tail] + left_out + text[len(text) - tail :]


def view(messages: Sequence[Message], window: int) -> list[Message]:
    """Return the messages for a model with such a window: the latest summary, and those that it does not cover."""
    summary = _latest_summary(messages)
    if summary is None:
        return [_fitted(message, window) for message in messages if message.role in SENT]
    data = summary.data or {}
    covers, dropped = data["covers"], data["dropped"]
    rest = [
        replace(message, content=DROPPED) if message.role == "tool" and index < dropped else _fitted(message, window)
        for index, message in enumerate(messages)
        if index >= covers and message.role in SENT
    ]
    if not any(message.role == "user" for message in rest):  # the last question stays as it was written
        asked = [message for message in messages[:covers] if message.role == "user"]
        rest = [*[_fitted(message, window) for message in asked[-1:]], *rest]
    return [replace(summary, role="user", content=BEFORE + summary.content, data=None), *rest] if covers else rest


def guess(messages: Sequence[Message], window: int) -> int:
    """Estimate the tokens of the messages that a model is sent, without the provider's count."""
    return sum(tokens_of(message) for message in view(messages, window))


def measure(messages: Sequence[Message], window: int, besides: Callable[[], str]) -> int:
    """Return about how many tokens a model is sent: the provider's last count, and an estimate for what came after.

    `besides` returns the system prompt and the tools; it is called only if there is no count.
    """
    rows = view(messages, window)
    summary = _latest_summary(messages)
    since = messages if summary is None else messages[_index_of(messages, summary) + 1 :]
    counted = sum(message.role in SENT for message in since)  # counts from before a summary are outdated
    guessed = 0
    for message in reversed(rows[len(rows) - counted :]):
        usage = _usage(message)
        if usage:
            return usage + guessed
        guessed += tokens_of(message)
    return tokens_in(besides()) + guess(messages, window)


def blocks(messages: Sequence[Message], begin: int) -> list[range]:
    """Divide a transcript into ranges that must stay together: a reply and the results of its calls."""
    starts = [index for index in range(begin, len(messages)) if messages[index].role in ("user", "assistant", "notice")]
    return [range(start, end) for start, end in pairwise([*starts, len(messages)])]


def keep_from(messages: Sequence[Message], window: int, room: int) -> int:
    """Return the index from which the rest of a transcript fits into `room` tokens."""
    summary = _latest_summary(messages)
    covered = 0 if summary is None else (summary.data or {})["covers"]
    keep = len(messages)
    for number, block in enumerate(reversed(blocks(messages, covered))):
        room -= sum(tokens_of(_fitted(messages[index], window)) for index in block if messages[index].role in SENT)
        is_question = number == 0 and messages[block.start].role == "user"
        if room < 0 and not is_question:
            break
        keep = block.start
    return keep


def _latest_summary(messages: Sequence[Message]) -> Message | None:
    return next((message for message in reversed(messages) if message.role == "summary"), None)


def _index_of(messages: Sequence[Message], wanted: Message) -> int:
    return next(index for index, message in enumerate(messages) if message is wanted)


def _fitted(message: Message, window: int) -> Message:
    """Return a message; a long tool result or interrupted answer is shortened, an agent's own brief is quoted."""
    data = message.data or {}
    if data.get("booked_by") == "agent":
        return replace(message, content=quote_own_brief(message.content))
    can_shorten = message.role == "tool" or bool(data.get("cut_off"))
    if not can_shorten or len(message.content) <= window * MAX_OF_ONE // 2:
        return message
    return replace(message, content=shorten(message.content, int(window * MAX_OF_ONE)))


def _usage(message: Message) -> int:
    response: dict[str, Any] = (message.data or {}).get("response") or {}
    usage: dict[str, Any] = response.get("usage") or {}
    return (usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0)


# Notice a provider that has dropped part of a prompt: it counted far fewer tokens than were sent.
#
# Local servers do this without an error when a prompt is longer than their window.


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


# Convert the transcript, which is append-only, to the messages of a model request, and replies to what is saved.


INTERRUPTED = (
    "This call was interrupted before its result was saved: it may or may not have happened. "
    "Look at what is there before you do it again."
)


def to_model(system: str, messages: Sequence[Message], images: Mapping[str, ImageBytes]) -> list[ModelMessage]:
    """Return a transcript as the messages of a model request.

    A tool call without a result gets one that says so: providers refuse a transcript with a missing result.
    """
    written: list[ModelMessage] = [ModelRequest(parts=[SystemPromptPart(content=system)])]
    unanswered: dict[str, ToolCallPart] = {}
    for message in messages:
        if message.role not in SENT:
            continue
        if message.role != "tool" and unanswered:
            written.append(_interrupted(unanswered.values()))
            unanswered = {}
        match message.role:
            case "assistant":
                response = _response(message)
                if not any(isinstance(part, ToolCallPart) or getattr(part, "content", "") for part in response.parts):
                    continue  # some providers refuse an empty reply
                written.append(response)
                unanswered = {part.tool_call_id: part for part in response.parts if isinstance(part, ToolCallPart)}
            case "tool":
                data = message.data or {}
                call = unanswered.pop(data.get("call_id", ""), None)
                if call is not None:
                    success = bool(data.get("success", True))
                    written.append(ModelRequest(parts=[_returned(call, message.content, success=success)]))
            case _:
                written.append(ModelRequest(parts=[UserPromptPart(content=_prompt(message, images))]))
    if unanswered:
        written.append(_interrupted(unanswered.values()))
    return written


def open_calls(messages: Sequence[Message]) -> list[ToolCallPart]:
    """Return the calls of the last reply that have no result yet, in their order."""
    answered = set[str]()
    for message in reversed(messages):
        if message.role not in SENT:
            continue
        if message.role == "tool":
            answered.add((message.data or {}).get("call_id", ""))
        elif message.role == "assistant":
            calls = [part for part in _response(message).parts if isinstance(part, ToolCallPart)]
            return [call for call in calls if call.tool_call_id not in answered]
        else:
            return []
    return []


def final_answer(steps: Sequence[Message]) -> Message | None:
    """Return the last saved step of a run if it is the final one: an answer, or why the run ended early."""
    said = [step for step in steps if step.role in SENT]
    if not said or said[-1].role != "assistant":
        return None
    data = said[-1].data or {}
    is_answer = "response" in data and not data.get("tool_calls") and "promise" not in data
    is_final = is_answer or "note" in data
    return said[-1] if is_final else None


def to_data(response: ModelResponse, thinking: str, calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the data that is saved with a reply's text: the provider's response, and what is shown to people."""
    parts = [keepable_call(part) if isinstance(part, ToolCallPart) else part for part in response.parts]
    [whole] = ModelMessagesTypeAdapter.dump_python([replace(response, parts=parts)], mode="json")
    data: dict[str, Any] = {"response": whole}
    if thinking:
        data["thinking"] = thinking
    if calls:
        data["tool_calls"] = list(calls)
    return data


def _response(message: Message) -> ModelResponse:
    whole = (message.data or {}).get("response")
    if whole is None:  # interrupted: only the text was saved
        return ModelResponse(parts=[TextPart(content=message.content)])
    [response] = ModelMessagesTypeAdapter.validate_python([whole])
    assert isinstance(response, ModelResponse)
    return response


def _interrupted(calls: Iterable[ToolCallPart]) -> ModelRequest:
    return ModelRequest(parts=[_returned(call, INTERRUPTED, success=False) for call in calls])


def _returned(call: ToolCallPart, text: str, *, success: bool) -> ToolReturnPart:
    """Return a result. Its metadata is for the demo model and not sent to providers."""
    metadata = {"success": success}
    return ToolReturnPart(tool_name=call.tool_name, content=text, tool_call_id=call.tool_call_id, metadata=metadata)


def _prompt(message: Message, images: Mapping[str, ImageBytes]) -> str | list[UserContent]:
    data = message.data or {}
    text = message.content
    if data.get("files"):
        text += f"\n[Uploaded files on disk: {', '.join(file['path'] for file in data['files'])}]"
    content: list[UserContent] = [text]
    for image in data.get("images", ()):
        if image["id"] in images:
            media_type, content_bytes = images[image["id"]]
            content.append(BinaryContent(data=content_bytes, media_type=media_type))
        else:
            content.append("[An image was here; it is too far back to be shown again.]")
    return text if len(content) == 1 else content
