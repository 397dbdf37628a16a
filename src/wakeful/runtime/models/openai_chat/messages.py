"""Convert messages and tools to the JSON of OpenAI-compatible chat completions."""

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.tools import ToolDefinition

from wakeful.runtime.models.errors import UnsupportedContent

THINKING_FIELDS = ("reasoning_content", "reasoning")  # DeepSeek, vLLM; OpenRouter, Groq, Ollama

WireMessage = dict[str, Any]

_SHORT_ID = re.compile(r"[A-Za-z0-9]{9}")


def write_messages(
    messages: Sequence[ModelMessage], instructions: Iterable[str], *, model: str, system: str
) -> list[WireMessage]:
    """Return the messages as JSON. Thinking is sent back only to the provider it came from."""
    prompt = "\n\n".join(instructions)
    written: list[WireMessage] = [{"role": "system", "content": prompt}] if prompt else []
    present = _beginning_of_this_turn(messages)
    for position, message in enumerate(messages):
        if isinstance(message, ModelRequest):
            written += _write_request(message, model)
        else:
            written += _write_response(message, system if position > present else None)
    return written


def write_tools(tools: Iterable[ToolDefinition]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description or "",
                "parameters": tool.parameters_json_schema,
            },
        }
        for tool in tools
    ]


def shorten_call_ids(messages: Iterable[WireMessage]) -> list[WireMessage]:
    """Return the messages with call ids of 9 letters and digits; the same id always becomes the same one."""
    shortened: list[WireMessage] = []
    for message in messages:
        changes: WireMessage = {}
        if "tool_call_id" in message:
            changes["tool_call_id"] = _short_id(message["tool_call_id"])
        if "tool_calls" in message:
            calls: list[WireMessage] = message["tool_calls"]
            changes["tool_calls"] = [call | {"id": _short_id(call["id"])} for call in calls]
        shortened.append(message | changes)
    return shortened


def _short_id(call_id: str) -> str:
    return call_id if _SHORT_ID.fullmatch(call_id) else blake2b(call_id.encode(), digest_size=5).hexdigest()[:9]


def _beginning_of_this_turn(messages: Sequence[ModelMessage]) -> int:
    """Return the index of the user's last message. Answers after it belong to the current turn.

    Servers that think between tool calls need that thinking until the turn ends, and some refuse older thinking.
    """
    spoken = [
        position
        for position, message in enumerate(messages)
        if isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts)
    ]
    return spoken[-1] if spoken else -1


def _write_request(request: ModelRequest, model: str) -> list[WireMessage]:
    written: list[WireMessage] = []
    files: list[UserContent] = []
    for part in request.parts:
        if isinstance(part, SystemPromptPart):
            written.append({"role": "system", "content": part.content})
        elif isinstance(part, UserPromptPart):
            written.append({"role": "user", "content": _write_user_content(part.content, model)})
        elif isinstance(part, ToolReturnPart):
            text, of_this_part = part.model_response_str_and_user_content()
            written.append({"role": "tool", "tool_call_id": part.tool_call_id, "content": text})
            files += of_this_part
        elif isinstance(part, RetryFeedbackPart):
            written.append({"role": "user", "content": part.model_response()})
        else:
            raise UnsupportedContent(model, f"a part of kind {part.part_kind!r}")
    if files:  # tool messages are text only, and must follow the calls directly
        written.append({"role": "user", "content": _write_user_content(files, model)})
    return written


def _write_user_content(content: str | Sequence[UserContent], model: str) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    return [_write_user_item(item, model) for item in content if not isinstance(item, CachePoint)]


def _write_user_item(item: UserContent, model: str) -> dict[str, Any]:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if isinstance(item, TextContent):
        return {"type": "text", "text": item.content}
    if isinstance(item, ImageUrl):
        return {"type": "image_url", "image_url": {"url": item.url}}
    if isinstance(item, BinaryContent):
        if item.is_image:
            return {"type": "image_url", "image_url": {"url": item.data_uri}}
        if item.media_type.startswith("text/"):
            return {"type": "text", "text": item.data.decode("utf-8", "replace")}
        raise UnsupportedContent(model, f"a file of type {item.media_type!r}")
    raise UnsupportedContent(model, f"content of kind {item.kind!r}")


def _write_response(response: ModelResponse, thinking_goes_to: str | None) -> list[WireMessage]:
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    calls = [_write_call(part) for part in response.parts if isinstance(part, ToolCallPart)]
    if not text and not calls:
        return []
    message: WireMessage = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = calls
    if thinking_goes_to is not None:
        message |= _write_thinking(response, thinking_goes_to)
    return [message]


def _write_thinking(response: ModelResponse, system: str) -> dict[str, str]:
    """Return the thinking of this provider in the field it came from."""
    written: dict[str, str] = {}
    for part in response.parts:
        if isinstance(part, ThinkingPart) and part.id in THINKING_FIELDS and part.provider_name == system:
            written[part.id] = written.get(part.id, "") + part.content
    return written


def _write_call(call: ToolCallPart) -> dict[str, Any]:
    function = {"name": call.tool_name, "arguments": call.args_as_json_str()}
    return {"id": call.tool_call_id, "type": "function", "function": function}
