"""Bases of our own models and their streams; `Playback` streams an answer that is made locally, piece by piece."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponseStreamEvent
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage


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
