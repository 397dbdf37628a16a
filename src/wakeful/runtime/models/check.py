"""Test a model with a one-word request, so that a wrong name or key is found before a run needs it."""

import asyncio
import time

from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest, TextPart, UserPromptPart

from wakeful.domain.agents.model_checks import ModelTrial
from wakeful.runtime.models.providers import Models

_ASK = "Answer with the one word: ready"
_PATIENCE = 20.0  # seconds; a person waits for the result
_SHOWN = 200  # characters of the answer


async def try_model(models: Models, name: str | None, patience: float = _PATIENCE) -> ModelTrial:
    """Return whether a model answers; an error of its provider is part of the result, not raised."""
    model, began = name or models.default, time.monotonic()

    def took() -> float:
        return time.monotonic() - began

    try:
        async with asyncio.timeout(patience):
            response = await model_request(
                await models.load(model), [ModelRequest(parts=[UserPromptPart(content=_ASK)])]
            )
    except TimeoutError:
        reason = f"The model {model!r} did not answer within {patience:g} seconds."
        return ModelTrial(model=model, outcome="timed_out", seconds=took(), reason=reason)
    except Exception as error:
        meaning = models.translate(error, model)
        if meaning is None:
            raise
        return ModelTrial(model=model, outcome="failed", seconds=took(), reason=str(meaning))
    said = "".join(part.content for part in response.parts if isinstance(part, TextPart)).strip()
    return ModelTrial(model=model, outcome="answered", seconds=took(), said=said[:_SHOWN])
