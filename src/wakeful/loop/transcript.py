"""Convert the transcript, which is append-only, to the messages of a model request, and replies to what is saved."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
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

from wakeful.core.types import Message
from wakeful.loop.arguments import keepable_call
from wakeful.loop.briefing import ImageBytes
from wakeful.loop.context import SENT

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
