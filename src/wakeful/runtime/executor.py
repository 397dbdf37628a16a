"""The one interface between the engine and whatever does the work of a run."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from wakeful.domain.events import RunEvent
from wakeful.domain.types import Message, Run


class Stop:
    """A person's wish that a run end now. Executors look at it before each thing that costs time or money."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    @property
    def is_requested(self) -> bool:
        return self._event.is_set()

    def request(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        await self._event.wait()


class Executor(Protocol):
    """Does the work of a run and says what happens as events.

    It goes on from the saved steps of earlier attempts, ends by itself, and raises if it fails. A `StepSaved` is
    durable before it is asked for the next event.
    """

    def execute(self, run: Run, saved_steps: Sequence[Message], stop: Stop, /) -> AsyncGenerator[RunEvent]: ...
