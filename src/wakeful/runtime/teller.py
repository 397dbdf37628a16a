"""Saves what a run says, then shows it: the first piece at once, after that a moment's worth at a time."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from wakeful.domain.events import RunFrame, StepSaved, StreamDelta, ThinkingDelta

_MERGE_WITHIN = 0.02  # seconds; deltas this close become one frame
_SAVE_EVERY = 0.05
_MOST_WAITING = 1_000  # frames; beyond, the run waits for the store

Save = Callable[[StepSaved | None, Sequence[RunFrame]], Awaitable[None]]


class Teller:
    """The voice of one run. Frames keep their order, and a step is saved together with what was said before it."""

    def __init__(self, save: Save) -> None:
        self._save = save
        self._waiting: list[RunFrame] = []
        self._merging_until = 0.0
        self._saved_at = 0.0
        self._has_more = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self.has_spoken = False

    @asynccontextmanager
    async def at_work(self) -> AsyncGenerator[None]:
        """Save in the background what is said, as long as the block lasts."""
        try:
            yield
        finally:
            if self._task is not None:
                self._task.cancel()
                with suppress(asyncio.CancelledError):
                    await self._task

    async def say(self, frame: RunFrame) -> None:
        """Say something. It is saved, and then shown, within a moment."""
        if self._failure is not None:
            raise self._failure
        self.has_spoken = True
        if self._task is None:
            self._task = asyncio.create_task(self._keep_saving())
        now = asyncio.get_running_loop().time()
        if not (now < self._merging_until and self._merge(frame)):
            self._waiting.append(frame)
            self._merging_until = now + _MERGE_WITHIN
        self._has_more.set()
        if len(self._waiting) > _MOST_WAITING:
            await self.flush()

    async def save(self, step: StepSaved) -> None:
        """Save a step, with everything said before it, and return when it is durable."""
        await self._write(step)

    async def flush(self) -> None:
        """Return when everything said so far is saved and shown."""
        await self._write(None)

    def _merge(self, frame: RunFrame) -> bool:
        match self._waiting[-1:], frame:
            case [StreamDelta() as last], StreamDelta():
                self._waiting[-1] = replace(last, delta=last.delta + frame.delta)
            case [ThinkingDelta() as last], ThinkingDelta():
                self._waiting[-1] = replace(last, delta=last.delta + frame.delta)
            case _:
                return False
        return True

    async def _keep_saving(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._has_more.wait()
            await asyncio.sleep(max(0.0, self._saved_at + _SAVE_EVERY - loop.time()))
            try:
                await self._write(None)
            except Exception as error:  # noqa: BLE001  (the run gets it, at its next word)
                self._failure = error
                return

    async def _write(self, step: StepSaved | None) -> None:
        async with self._one_at_a_time:
            frames, self._waiting = self._waiting, []
            self._has_more.clear()
            if frames or step is not None:
                await self._save(step, frames)
                self._saved_at = asyncio.get_running_loop().time()
