"""The interface between the engine and what executes a run."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Protocol

from wakeful.core.events import RunEvent
from wakeful.core.types import ClaimedRun, Message


class RunStopped(Exception):
    """A stop request interrupted the execution."""


class Stop:
    """A person's stop request. Executors check it before everything that costs time or money."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._cuts: set[asyncio.Task[object]] = set()  # tasks to cancel; subagents run in parallel

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
        """Cancel what the block awaits as soon as a stop is requested; the block then raises RunStopped.

        Never yield an event inside the block: the stop would then cancel the saving of that event.
        """
        if self.is_requested:
            raise RunStopped
        task = asyncio.current_task()
        assert task is not None
        self._cuts.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if task not in self._cuts and task.uncancel() == 0:  # else the task was cancelled from elsewhere too
                raise RunStopped from None
            raise
        finally:
            self._cuts.discard(task)


BeforeCall = Callable[[], Awaitable[None]]  # cheap after the first time


class Executor(Protocol):
    """Executes a run, and yields what happens as events.

    It resumes from the saved steps of earlier attempts, ends by itself, and raises if it fails. A `StepSaved` is
    durable before the next event is requested; the last one is saved with the end of the run. It awaits `before_call`
    before each model or tool call: a start that crashes before the first one does not count as an attempt.
    """

    def execute(
        self, run: ClaimedRun, saved_steps: Sequence[Message], stop: Stop, before_call: BeforeCall, /
    ) -> AsyncGenerator[RunEvent]: ...
