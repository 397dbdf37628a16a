"""What our own models have in common: they stream, and an answer in one piece is a stream read to its end."""

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings


class StreamingModel(Model[None]):
    """A model that defines `request_stream` alone."""

    _announces_system_voice = False  # the system prompt goes out as it was written

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
