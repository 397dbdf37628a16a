"""Ask an agent's model outside of any run: without tools, session or wakes."""

import asyncio

from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelMessage, ModelRequest, SystemPromptPart, TextPart, UserPromptPart
from pydantic_ai.usage import RequestUsage

from wakeful.completions.service import SideAnswer
from wakeful.core.budget import NOTHING, Budget
from wakeful.core.clock import Clock
from wakeful.core.errors import Unavailable, WakefulError
from wakeful.core.types import Agent
from wakeful.loop.context import tokens_in
from wakeful.loop.spending import PriceUnknown
from wakeful.models.by_name import Models

_SIDE_PATIENCE = 120.0  # seconds


class NoSideAnswer(Unavailable):
    code = "model_silent"

    def __init__(self, model: str) -> None:
        super().__init__(f"The model {model!r} has not answered within {_SIDE_PATIENCE:.0f} s. Try again later.")


class SideRequests:
    def __init__(self, models: Models, clock: Clock) -> None:
        self._models = models
        self._clock = clock

    async def ask(self, agent: Agent, system: str, text: str) -> SideAnswer:
        """Return what the model of an agent answers to one message. Its owner's prompt is not part of it."""
        name = agent.model or self._models.default
        self._check_price(agent, name)
        parts = [*([SystemPromptPart(content=system)] if system else []), UserPromptPart(content=text)]
        began = self._clock.monotonic()
        said, used = await self._request(name, [ModelRequest(parts=parts)])
        if not used.has_values():
            used = RequestUsage(input_tokens=tokens_in(system + text), output_tokens=tokens_in(said))
        return SideAnswer(
            text=said,
            model=name,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cost_micros=self._models.price(name, used, at=self._clock.now()),
            seconds=self._clock.monotonic() - began,
        )

    def _check_price(self, agent: Agent, name: str) -> None:
        price = self._models.price(name, RequestUsage(input_tokens=1), at=self._clock.now())
        if price is None and Budget(agent.budgets, NOTHING).counts_money:
            raise PriceUnknown(name)

    async def _request(self, name: str, messages: list[ModelMessage]) -> tuple[str, RequestUsage]:
        try:
            await self._models.prepare(name)
            async with asyncio.timeout(_SIDE_PATIENCE):
                response = await model_request(await self._models.load(name), messages)
        except TimeoutError:
            raise NoSideAnswer(name) from None
        except WakefulError:
            raise
        except Exception as error:  # providers' errors have many classes; the models know which are theirs
            known = self._models.translate(error, name)
            if known is None:
                raise
            raise known from error
        return "".join(part.content for part in response.parts if isinstance(part, TextPart)), response.usage
