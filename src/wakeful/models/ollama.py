"""A model at Ollama: the request and the stream of `/api/chat`, in terms of chat completions.

Ollama's compatible API runs a model with a window that the caller can neither set nor see, often of 4,096 tokens, and
drops the beginning of a longer prompt without an error. Here every request says the window.
"""

from typing import Any, NoReturn, cast

import orjson
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from wakeful.models.errors import UnsupportedContent
from wakeful.models.openai_chat import OpenAIChat, WireRequest
from wakeful.models.openai_wire import ChatChunks

_OPTIONS = {  # settings of chat completions in Ollama's `options`
    "max_tokens": "num_predict",
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "stop": "stop",
}
_LEVELS = ("low", "medium", "high")


class OllamaChat(OpenAIChat):
    """A model of Ollama, with the window that it is run with."""

    def __init__(self, *args: Any, window: int, **more: Any) -> None:
        super().__init__(*args, **more)
        self._window = window

    def _write(
        self, messages: list[ModelMessage], settings: ModelSettings, parameters: ModelRequestParameters
    ) -> dict[str, Any]:
        body = super()._write(messages, settings, parameters)
        options = {theirs: body[ours] for ours, theirs in _OPTIONS.items() if ours in body}
        written: dict[str, Any] = {
            "model": self._name,
            "messages": _translate_messages(body["messages"], self._shown),
            "stream": True,
            "options": {"num_ctx": self._window} | options,
        }
        if "tools" in body:
            written["tools"] = body["tools"]
        thinking = parameters.thinking
        if thinking is not None:
            written["think"] = thinking if thinking in _LEVELS else bool(thinking)
        return written

    def _wire(self, body: dict[str, Any]) -> WireRequest:
        return WireRequest(body=body, path="api/chat", line_prefix=b"", chunks=OllamaChunks)


class OllamaChunks(ChatChunks):
    """Parses the lines of `/api/chat`."""

    def _read(self, chunk: Any) -> None:
        if chunk.get("error"):
            raise self._failure(chunk["error"])
        super()._read(_translate_chunk(chunk))
        self.is_done = self.is_done or bool(chunk.get("done"))


def _translate_chunk(chunk: Any) -> dict[str, Any]:
    """Return a line as a chunk of chat completions."""
    message: Any = chunk.get("message") or {}
    delta = {
        "content": message.get("content"),
        "reasoning": message.get("thinking"),
        "tool_calls": [_call(each) for each in message.get("tool_calls") or ()],
    }
    translated: dict[str, Any] = {"choices": [{"delta": delta}]}
    if chunk.get("done"):
        translated["choices"][0]["finish_reason"] = chunk.get("done_reason") or "stop"
        translated["usage"] = {
            "prompt_tokens": chunk.get("prompt_eval_count") or 0,
            "completion_tokens": chunk.get("eval_count") or 0,
        }
    return translated


def _call(call: Any) -> dict[str, Any]:
    function: Any = call.get("function") or {}
    return {"id": call.get("id"), "index": function.get("index"), "function": function}


def _translate_messages(messages: list[dict[str, Any]], shown: str) -> list[dict[str, Any]]:
    """Return messages of chat completions in Ollama's form: calls as objects, tools by name, images apart."""
    names: dict[str, str] = {}  # of tools, by the id of their call
    translated: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            name = names.get(message["tool_call_id"], "")
            translated.append({"role": "tool", "content": message["content"], "tool_name": name})
            continue
        text, images = _split_content(message["content"], shown)
        written: dict[str, Any] = {"role": message["role"], "content": text}
        if images:
            written["images"] = images
        if thought := message.get("reasoning") or message.get("reasoning_content"):
            written["thinking"] = thought
        if calls := message.get("tool_calls"):
            names |= {call["id"]: call["function"]["name"] for call in calls}
            written["tool_calls"] = [{"function": _function(call["function"])} for call in calls]
        translated.append(written)
    return translated


def _function(function: dict[str, Any]) -> dict[str, Any]:
    try:
        arguments: Any = orjson.loads(function["arguments"] or "{}")
    except orjson.JSONDecodeError:  # the model wrote it so; the result of the call says what was wrong
        arguments = {}
    return {"name": function["name"], "arguments": arguments if isinstance(arguments, dict) else {}}


def _split_content(content: Any, shown: str) -> tuple[str, list[str]]:
    """Return the text of a message and its images in base64."""
    if not isinstance(content, list):
        return content or "", []
    texts: list[str] = []
    images: list[str] = []
    for part in cast("list[Any]", content):
        if part["type"] == "text":
            texts.append(part["text"])
        else:
            head, comma, data = part["image_url"]["url"].partition(",")
            images.append(data if comma and head.startswith("data:") else _refuse_link(shown))
    return "\n\n".join(texts), images


def _refuse_link(shown: str) -> NoReturn:
    raise UnsupportedContent(shown, "an image by its link")
