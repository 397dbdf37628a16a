"""Parse the streamed chunks of an OpenAI-compatible provider."""

from dataclasses import dataclass, field
from typing import Any

import orjson
from pydantic_ai.messages import FinishReason
from pydantic_ai.usage import RequestUsage

from wakeful.domain import ids
from wakeful.domain.errors import WakefulError
from wakeful.runtime.models.errors import ModelBusy, ModelCutOff, ModelFailed, is_busy, quote, words_of
from wakeful.runtime.models.openai_chat.delta_buffer import DeltaBuffer
from wakeful.runtime.models.openai_chat.messages import THINKING_FIELDS

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


Target = Text | Thinking | Call


class ChatChunks:
    """Parses chunks, and adds their text, thinking and calls to the buffer."""

    def __init__(self, model: str, buffer: DeltaBuffer[Target], *, hide: tuple[str, ...] = ()) -> None:
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
