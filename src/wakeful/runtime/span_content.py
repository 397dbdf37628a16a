"""Messages as content of spans, in the form of OpenTelemetry's conventions."""

from collections.abc import Sequence
from typing import Any

import orjson
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

_MAX_TEXT = 8_000  # characters of one part
_ROLES: dict[type, str] = {SystemPromptPart: "system", ToolReturnPart: "tool"}


def to_otel(messages: Sequence[ModelMessage]) -> str:
    """Return messages as JSON: a role and its parts for each. Images are named, not contained."""
    found: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, ModelRequest):
            found += [{"role": _ROLES.get(type(part), "user"), "parts": [_to_part(part)]} for part in message.parts]
        else:
            found.append({"role": "assistant", "parts": [_to_part(part) for part in message.parts]})
    return orjson.dumps(found).decode()


def _to_part(part: Any) -> dict[str, Any]:
    match part:
        case ToolCallPart():
            return {
                "type": "tool_call",
                "id": part.tool_call_id,
                "name": part.tool_name,
                "arguments": part.args_as_json_str()[:_MAX_TEXT],
            }
        case ToolReturnPart():
            response = part.model_response_str()[:_MAX_TEXT]
            return {"type": "tool_call_response", "id": part.tool_call_id, "response": response}
        case ThinkingPart():
            return {"type": "reasoning", "content": part.content[:_MAX_TEXT]}
        case TextPart() | SystemPromptPart():
            return {"type": "text", "content": part.content[:_MAX_TEXT]}
        case UserPromptPart():
            return {"type": "text", "content": _text_of(part)[:_MAX_TEXT]}
        case _:
            return {"type": str(part.part_kind)}


def _text_of(part: UserPromptPart) -> str:
    if isinstance(part.content, str):
        return part.content
    return "\n".join(each if isinstance(each, str) else f"[{type(each).__name__}]" for each in part.content)
