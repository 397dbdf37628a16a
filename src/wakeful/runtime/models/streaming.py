"""Bases of our own models and their streams."""

from dataclasses import dataclass
from datetime import datetime

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings


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
