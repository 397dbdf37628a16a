"""Base of our own models: they stream, and `request` reads the stream to its end."""

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings


class StreamingModel(Model[None]):
    """A model that defines `request_stream` alone."""

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
