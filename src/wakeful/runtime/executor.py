"""The one interface between the engine and whatever does the work of a run."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import contextmanager
from typing import Protocol

from wakeful.domain.events import RunEvent
from wakeful.domain.types import Message, Run


class Stopped(Exception):
    """A person's wish to stop cut off what was under way."""


class Stop:
    """A person's wish that a run end now. Executors look at it before each thing that costs time or money."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._cut: asyncio.Task[object] | None = None

    @property
    def is_requested(self) -> bool:
        return self._event.is_set()

    def request(self) -> None:
        self._event.set()
        if self._cut is not None:
            self._cut.cancel()
            self._cut = None

    async def wait(self) -> None:
        await self._event.wait()

    @contextmanager
    def cuts_off(self) -> Generator[None]:
        """Break off what the block waits for as soon as the wish is there, by raising Stopped.

        Never yield an event from inside: the wish would then cut off whoever saves it.
        """
        if self.is_requested:
            raise Stopped
        task = self._cut = asyncio.current_task()
        assert task is not None
        try:
            yield
        except asyncio.CancelledError:
            if self._cut is None and task.uncancel() == 0:  # else someone besides us wants the task to end
                raise Stopped from None
            raise
        finally:
            self._cut = None


class Executor(Protocol):
    """Does the work of a run and says what happens as events.

    It goes on from the saved steps of earlier attempts, ends by itself, and raises if it fails. A `StepSaved` is
    durable before it is asked for the next event.
    """

    def execute(self, run: Run, saved_steps: Sequence[Message], stop: Stop, /) -> AsyncGenerator[RunEvent]: ...
