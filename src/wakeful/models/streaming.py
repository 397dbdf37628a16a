"""Bases of our own models and their streams."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson
from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponseStreamEvent
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from wakeful.core.clock import Clock, SystemClock


class StreamingModel(Model[None]):
    """A model that defines `request_stream` alone: `request` reads the stream to its end."""

    _announces_system_voice = False  # the system prompt is sent unchanged

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        async with self.request_stream(messages, model_settings, model_request_parameters) as stream:
            async for _ in stream:
                pass
        return stream.get()


@dataclass
class ModelStream(StreamedResponse):
    """A stream of one of our models."""

    _model: Model[None]
    _timestamp: datetime

    @property
    def model_name(self) -> str:
        return self._model.model_name

    @property
    def provider_name(self) -> str:
        return self._model.system

    @property
    def provider_url(self) -> str | None:
        return self._model.base_url

    @property
    def timestamp(self) -> datetime:
        return self._timestamp


# A pydantic-ai stream of an answer that is generated locally, piece by piece.


@dataclass(frozen=True, slots=True)
class Say:
    text: str


@dataclass(frozen=True, slots=True)
class Think:
    text: str


@dataclass(frozen=True, slots=True)
class LocalCall:
    tool: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict[str, Any])  # a string is sent unchanged
    id: str | None = None  # None: one is made


@dataclass(frozen=True, slots=True)
class Spend:
    """The tokens the answer has cost."""

    input: int
    output: int


Piece = Say | Think | LocalCall | Spend


@dataclass
class Playback(ModelStream):
    """Yields the events of the pieces."""

    _pieces: AsyncIterator[Piece]
    _is_closed: bool = field(default=False, init=False)

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        self.finish_reason = "stop"
        async for piece in self._pieces:
            if self._is_closed:
                return
            if isinstance(piece, Say):
                for event in self._parts_manager.handle_text_delta(vendor_part_id=None, content=piece.text):
                    yield event
            elif isinstance(piece, Think):
                for event in self._parts_manager.handle_thinking_delta(vendor_part_id=None, content=piece.text):
                    yield event
            elif isinstance(piece, LocalCall):
                self.finish_reason = "tool_call"
                args = piece.arguments
                yield self._parts_manager.handle_tool_call_part(
                    vendor_part_id=None,
                    tool_name=piece.tool,
                    args=args if isinstance(args, str) else orjson.dumps(args).decode(),
                    tool_call_id=piece.id,
                )
            else:
                self._usage = self._usage + RequestUsage(input_tokens=piece.input, output_tokens=piece.output)

    async def close_stream(self) -> None:
        self._is_closed = True


# A model for tests that plays a script, and fails the test if the script is not used up.
#
# A turn is a list of pieces: `Say`, `Think`, `Call`, `Spend`, an exception to raise, seconds to wait, or an async
# function to await in the middle, such as an Event's `wait`.


Turn = Sequence[Piece | BaseException | float | Callable[[], Awaitable[object]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request, as the model saw it."""

    messages: list[ModelMessage]
    settings: ModelSettings | None
    parameters: ModelRequestParameters


class ScriptedModel(StreamingModel):
    """Answers the first request with the first turn, and so on; `asked` has the requests."""

    def __init__(self, *turns: Turn, clock: Clock | None = None) -> None:
        super().__init__()
        self._turns = turns
        self._clock = clock or SystemClock()
        self.asked: list[ModelRequest] = []

    @property
    def model_name(self) -> str:
        return "scripted"

    @property
    def system(self) -> str:
        return "scripted"

    def check_used_up(self) -> None:
        """Raise AssertionError unless every turn was asked for, and no more than that."""
        assert len(self.asked) == len(self._turns), (
            f"the script has {len(self._turns)} turns, and the model was asked {len(self.asked)} times"
        )

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,  # noqa: ARG002  (the library's signature)
    ) -> AsyncGenerator[StreamedResponse]:
        asked = ModelRequest(messages=list(messages), settings=model_settings, parameters=model_request_parameters)
        self.asked.append(asked)
        if len(self.asked) > len(self._turns):
            self.check_used_up()
        async with aclosing(_play(self._turns[len(self.asked) - 1])) as pieces:
            yield Playback(model_request_parameters, self, self._clock.now(), pieces)


@contextmanager
def scripted(*turns: Turn, clock: Clock | None = None) -> Generator[ScriptedModel]:
    """Make a model for the block and fail if its script was not used up; an error in the block takes precedence."""
    model = ScriptedModel(*turns, clock=clock)
    yield model
    model.check_used_up()


async def _play(turn: Turn) -> AsyncGenerator[Piece]:
    for piece in turn:
        if isinstance(piece, BaseException):
            raise piece
        if isinstance(piece, int | float):
            await asyncio.sleep(piece)
        elif callable(piece):
            await piece()
        else:
            yield piece
