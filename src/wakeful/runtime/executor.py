"""The one interface between the engine and whatever does the work of a run."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Protocol

from wakeful.domain.events import RunEvent
from wakeful.domain.types import Message, Run


class RunStopped(Exception):
    """A person's wish to stop cut off what was under way."""


class Stop:
    """A person's wish that a run end now. Executors look at it before each thing that costs time or money."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._cuts: set[asyncio.Task[object]] = set()  # what waits and may be cut off; subagents wait side by side

    @property
    def is_requested(self) -> bool:
        return self._event.is_set()

    def request(self) -> None:
        self._event.set()
        for task in self._cuts:
            task.cancel()
        self._cuts.clear()

    async def wait(self) -> None:
        await self._event.wait()

    @contextmanager
    def cuts_off(self) -> Generator[None]:
        """Break off what the block waits for as soon as the wish is there, by raising Stopped.

        Never yield an event from inside: the wish would then cut off whoever saves it.
        """
        if self.is_requested:
            raise RunStopped
        task = asyncio.current_task()
        assert task is not None
        self._cuts.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if task not in self._cuts and task.uncancel() == 0:  # else someone besides us wants the task to end
                raise RunStopped from None
            raise
        finally:
            self._cuts.discard(task)


BeforeCall = Callable[[], Awaitable[None]]  # cheap after the first time


class Executor(Protocol):
    """Does the work of a run and says what happens as events.

    It goes on from the saved steps of earlier attempts, ends by itself, and raises if it fails. A `StepSaved` is
    durable before it is asked for the next event; the last one is saved with the run's end. It awaits `before_call`
    before each model or tool call: a start that a crash cuts off earlier than that spends no attempt.
    """

    def execute(
        self, run: Run, saved_steps: Sequence[Message], stop: Stop, before_call: BeforeCall, /
    ) -> AsyncGenerator[RunEvent]: ...
