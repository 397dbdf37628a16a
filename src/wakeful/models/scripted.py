"""A model for tests that plays a script, and fails the test if the script is not used up.

A turn is a list of pieces: `Say`, `Think`, `Call`, `Spend`, an exception to raise, seconds to wait, or an async
function to await in the middle, such as an Event's `wait`.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings

from wakeful.core.clock import Clock, SystemClock
from wakeful.models.streaming import Piece, Playback, StreamingModel

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
