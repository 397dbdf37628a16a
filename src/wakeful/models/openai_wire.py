"""The wire of OpenAI-compatible chat completions: messages, streamed chunks, server-sent events."""

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Generic, TypeVar

import orjson
from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    FinishReason,
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
from pydantic_ai.usage import RequestUsage

from wakeful.core import ids
from wakeful.core.errors import WakefulError
from wakeful.models.errors import ModelBusy, ModelCutOff, ModelFailed, UnsupportedContent, is_busy, quote, words_of

# Convert messages and tools to the JSON of OpenAI-compatible chat completions.


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


# A buffer for the pieces of an answer, which merges pieces that arrive close together.


WINDOW = 0.02  # seconds; pieces that arrive within this time after the last read are merged
MAX_WAITING = 4 * 1024 * 1024  # characters; a reader that is further behind makes the writer wait


Target = TypeVar("Target")


class Silence(Exception):
    """Nothing arrived until the reader's deadline."""


class DeltaBuffer(Generic[Target]):
    """One writer, one reader. The first piece is passed on at once; none is held back longer than the window."""

    def __init__(self, window: float = WINDOW) -> None:
        self._loop = asyncio.get_running_loop()
        self._window = window
        self._pieces: list[tuple[Target, list[str]]] = []
        self._waiting = 0  # characters
        self._taken_at = float("-inf")
        self._is_closed = False
        self._failure: BaseException | None = None
        self._reader: asyncio.Future[None] | None = None
        self._is_listening = False  # the reader waits for any piece, not only for the end of the window
        self._room = asyncio.Event()

    def put(self, target: Target, text: str) -> None:
        """Add a piece; `notify` wakes the reader."""
        if self._pieces and self._pieces[-1][0] is target:
            self._pieces[-1][1].append(text)
        else:
            self._pieces.append((target, [text]))
        self._waiting += len(text)

    def notify(self) -> None:
        """Wake a reader that waits for pieces."""
        if self._is_listening and self._pieces:
            self._wake()

    def look_again(self) -> None:
        """Let a waiting reader compute its deadline again."""
        if self._is_listening:
            self._wake()

    def close(self, failure: BaseException | None = None) -> None:
        """Close the buffer. The reader first gets the rest, then the failure."""
        if not self._is_closed:
            self._is_closed = True
            self._failure = failure
            self._room.set()
            self._wake()

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def is_full(self) -> bool:
        return self._waiting > MAX_WAITING and not self._is_closed

    async def make_room(self) -> None:
        """Wait while the reader is too far behind."""
        while self.is_full:
            self._room.clear()
            await self._room.wait()

    async def wait(self, patience: Callable[[], float]) -> None:
        """Return when there is something to take; `patience` returns the deadline."""
        while not self._pieces and not self._is_closed:
            left = patience() - self._loop.time()
            if left <= 0:
                raise Silence
            self._is_listening = True
            try:
                await self._sleep(left)
            finally:
                self._is_listening = False
        if not self._pieces and self._failure is not None:
            raise self._failure

    async def take(self, patience: Callable[[], float]) -> list[tuple[Target, str]]:
        """Return the pieces so far, merged; an empty list means the end."""
        await self.wait(patience)
        held = self._taken_at + self._window - self._loop.time()
        if held > 0 and not self._is_closed:
            await self._sleep(held)
        pieces = [(target, "".join(texts)) for target, texts in self._pieces]
        self._pieces.clear()
        self._waiting = 0
        self._room.set()
        self._taken_at = self._loop.time()
        return pieces

    async def _sleep(self, seconds: float) -> None:
        # A bare timer: asyncio.timeout and a queue would take longer than the rest of a delta's handling.
        self._reader = self._loop.create_future()
        timer = self._loop.call_later(seconds, self._wake)
        try:
            await self._reader
        finally:
            timer.cancel()
            self._reader = None

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


# Parse the streamed chunks of an OpenAI-compatible provider.


MAX_CALLS = 100  # tool calls of one answer; an answer with more is not read to its end

FINISH_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_call",
    "function_call": "tool_call",
    "content_filter": "content_filter",
}


@dataclass(eq=False, slots=True)
class Text:
    """The answer itself."""


@dataclass(eq=False, slots=True)
class Thinking:
    """Thinking, under the field it came in."""

    field: str


@dataclass(eq=False, slots=True)
class Call:
    """A tool call that may arrive in many pieces."""

    number: int
    id: str
    sent_id: str | None = None  # the provider's id
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])

    def is_complete(self) -> bool:
        try:
            orjson.loads("".join(self.arguments))
        except orjson.JSONDecodeError:
            return False
        return True


Part = Text | Thinking | Call


class ChatChunks:
    """Parses chunks, and adds their text, thinking and calls to the buffer."""

    def __init__(self, model: str, buffer: DeltaBuffer[Part], *, hide: tuple[str, ...] = ()) -> None:
        self._model = model
        self._buffer = buffer
        self._hide = hide
        self._text = Text()
        self._thinking = [Thinking(field) for field in THINKING_FIELDS]
        self._thinking_part = Thinking("thinking")  # is not sent back
        self._calls: list[Call] = []
        self._by_index: dict[int, Call] = {}
        self.has_begun = False
        self.has_said = False  # text, thinking or a call
        self.is_done = False
        self.finish: str | None = None  # the provider's finish reason
        self.usage: RequestUsage | None = None
        self.response_id: str | None = None

    @property
    def is_answered(self) -> bool:
        """Return whether the provider has marked its answer as complete."""
        return self.is_done or self.finish is not None

    def read(self, payload: bytes) -> None:
        """Parse one chunk; raise if it reports an error or cannot be parsed."""
        if payload == b"[DONE]":
            self.has_begun = self.is_done = True
            return
        if not payload:
            return
        try:
            chunk: Any = orjson.loads(payload)
            self._read(chunk)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            words = quote(payload.decode("utf-8", "replace"), hide=self._hide)
            raise ModelCutOff(self._model, f"it sent a chunk that cannot be read: {words}") from error
        self.has_begun = True

    def check_calls(self) -> None:
        """Refuse an answer with a tool call without a name."""
        if any(not call.name for call in self._calls):
            raise ModelCutOff(self._model, "it called a tool without a name.")

    def _read(self, chunk: Any) -> None:
        if chunk.get("error"):
            raise self._failure(chunk["error"])
        if usage := chunk.get("usage"):
            self.usage = _read_usage(usage)
        if choices := chunk.get("choices"):
            choice = choices[0]
            # A server that does not stream sends the whole message where others send a delta.
            if delta := choice.get("delta") or choice.get("message"):
                self._read_delta(delta)
            if finish := choice.get("finish_reason"):
                self._finish(finish)
        if self.response_id is None:
            self.response_id = chunk.get("id")

    def _failure(self, error: Any) -> WakefulError:
        """Return the error that a provider reports in a stream that began with status 200."""
        words = quote(words_of(error), hide=self._hide)
        code = str(_field(error, "code"))
        status = int(code) if code.isdecimal() else None
        if self.has_said:
            return ModelCutOff(self._model, words, status=status)
        if status is not None and is_busy(status):
            return ModelBusy(self._model, words, status=status)
        return ModelFailed(self._model, words, status=status)

    def _read_delta(self, delta: Any) -> None:
        for target in self._thinking:
            if thought := delta.get(target.field):
                self.has_said = True
                self._buffer.put(target, thought)
                break  # some servers send the same thinking in both fields
        if text := delta.get("content"):
            self.has_said = True
            if isinstance(text, str):
                self._buffer.put(self._text, text)
            else:
                self._read_parts(text)
        if calls := delta.get("tool_calls"):
            self.has_said = True
            for piece in calls:
                self._read_call(piece)

    def _read_parts(self, parts: list[Any]) -> None:
        """Read content that is a list of parts; Mistral's thinking is one of them."""
        for part in parts:
            if thought := part.get("thinking"):
                self._buffer.put(self._thinking_part, thought if isinstance(thought, str) else _join(thought))
            elif text := part.get("text"):
                self._buffer.put(self._text, text)

    def _finish(self, word: str) -> None:
        if word == "error":
            raise ModelCutOff(self._model, "the provider reported an error in the middle of its answer.")
        self.finish = word

    def _read_call(self, piece: Any) -> None:
        function: Any = piece.get("function") or {}
        name: str = function.get("name") or ""
        arguments: Any = function.get("arguments") or ""
        if not isinstance(arguments, str):  # an object, from Ollama
            arguments = orjson.dumps(arguments).decode()
        call = self._find_call(piece, name)
        if call is None:
            return
        call.arguments.append(arguments)
        if call.name:
            self._buffer.put(call, arguments)
        elif name:  # the arguments before it were held back
            call.name = name
            self._buffer.put(call, "".join(call.arguments))

    def _find_call(self, piece: Any, name: str) -> Call | None:
        """Return the call that this piece continues, or a new one; None if there are too many."""
        index, sent_id = piece.get("index"), piece.get("id") or None
        call = self._by_index.get(index) if index is not None else self._latest(sent_id)
        if call is None or (name and call.name and self._is_another(call, sent_id)):
            if len(self._calls) > MAX_CALLS:  # the reader stops at that one; the rest is ignored
                return None
            call = Call(number=len(self._calls), id=self._name_call(sent_id), sent_id=sent_id)
            self._calls.append(call)
        elif call.sent_id is None:
            call.sent_id = sent_id
        if index is not None:
            self._by_index[index] = call
        return call

    def _latest(self, sent_id: str | None) -> Call | None:
        of_that_id = [call for call in self._calls if sent_id is not None and call.sent_id == sent_id]
        return (of_that_id or self._calls or [None])[-1]

    @staticmethod
    def _is_another(call: Call, sent_id: str | None) -> bool:
        """Return whether a piece with a name is a new call: some servers repeat the name, some the index."""
        return sent_id != call.sent_id if sent_id and call.sent_id else call.is_complete()

    def _name_call(self, sent_id: str | None) -> str:
        is_free = sent_id is not None and all(call.id != sent_id for call in self._calls)
        return sent_id if sent_id is not None and is_free else f"call_{ids.new_id()}"


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  (JSON)


def _join(parts: list[Any]) -> str:
    """Return the text of content that is a list of parts."""
    return "".join(part.get("text") or "" for part in parts)


def _read_usage(usage: Any) -> RequestUsage:
    prompt: Any = usage.get("prompt_tokens_details") or {}
    completion: Any = usage.get("completion_tokens_details") or {}
    reasoning = completion.get("reasoning_tokens")
    return RequestUsage(
        input_tokens=usage.get("prompt_tokens") or 0,
        output_tokens=usage.get("completion_tokens") or 0,
        cache_read_tokens=prompt.get("cached_tokens") or usage.get("prompt_cache_hit_tokens") or 0,
        details={"reasoning_tokens": reasoning} if reasoning else {},
    )


# Parse the data lines of server-sent events, in chunks that may end anywhere.


MAX_LINE = 32 * 1024 * 1024


class LineTooLong(ValueError):
    """A line exceeds the limit."""


class DataLines:
    """Collects bytes and returns the payload of each finished `data:` line.

    Providers put one JSON object on one line, so a line is an event here; comments and other fields are ignored. Only
    complete lines are returned, so a character that was split between two chunks is complete again.
    """

    def __init__(self, longest: int = MAX_LINE, prefix: bytes = b"data:") -> None:
        self._longest = longest
        self._prefix = prefix  # empty: every line is a payload, as in NDJSON
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        if b"\n" not in chunk:
            self._rest += chunk
            if len(self._rest) > self._longest:
                raise LineTooLong
            return []
        if self._rest:
            chunk = bytes(self._rest) + chunk
            self._rest.clear()
        *lines, rest = chunk.split(b"\n")
        if rest:
            self._rest += rest
        return [line[len(self._prefix) :].strip() for line in lines if line.startswith(self._prefix)]

    def finish(self) -> list[bytes]:
        """Return the payload of the last line if the stream ended without a line break."""
        rest = bytes(self._rest)
        self._rest.clear()
        return [rest[len(self._prefix) :].strip()] if rest.startswith(self._prefix) else []
