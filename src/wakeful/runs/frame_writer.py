"""Save the frames of a run, then publish them: the first words at once, later ones in batches of 20 to 100 ms."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext, suppress

from wakeful.core.events import RunFrame, StepSaved, StreamDelta, ThinkingDelta

_MIN_BATCH, _MAX_BATCH = 0.02, 0.1  # seconds; the deltas of this time become one frame
_MAX_WAITING = 1_000  # frames; beyond, the run waits for the store

Save = Callable[[StepSaved | None, Sequence[RunFrame]], Awaitable[None]]


def batch_seconds(commit_seconds: float) -> float:
    """Return how long to collect frames after a commit that took that long.

    As long as the commit: text streams smoothly if the store is fast, and keeps a slow one busy half of the time.
    """
    return min(max(commit_seconds, _MIN_BATCH), _MAX_BATCH)


class FrameWriter:
    """Save and publish the frames of one run in order; a step is saved together with the frames before it."""

    def __init__(self, save: Save) -> None:
        self._save = save
        self._waiting: list[RunFrame] = []
        self._merging: type[StreamDelta | ThinkingDelta] | None = None  # the kind of frame that the pieces become
        self._pieces: list[str] = []
        self._next_save_at = 0.0  # on the loop's clock
        self._has_more = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self.has_spoken = False

    async def __aenter__(self) -> "FrameWriter":
        """Save frames in the background until the block ends."""
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._task is None:  # there were no frames
            return
        # Cancelled, perhaps because the store is unavailable: do not wait for it.
        is_cut_off = kind is not None and issubclass(kind, asyncio.CancelledError)
        # Frames that are being written are no longer queued, so cancelling the write would lose them.
        async with nullcontext() if is_cut_off else self._one_at_a_time:
            self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def say(self, frame: RunFrame) -> None:
        """Queue a frame, to be saved and then published within 0.1 s of the last save of words."""
        if self._failure is not None:
            raise self._failure
        self.has_spoken = True
        if self._task is None:
            self._task = asyncio.create_task(self._keep_saving())
        if isinstance(frame, StreamDelta | ThinkingDelta):
            self._merge(type(frame), frame.delta)
        else:
            self._close_merged()
            self._waiting.append(frame)
        self._has_more.set()
        if len(self._waiting) > _MAX_WAITING:
            await self.flush()

    async def save(self, step: StepSaved) -> None:
        """Save a step with all frames before it, and return when it is durable."""
        await self._write(step)

    async def flush(self) -> None:
        """Return when all frames so far are saved and published."""
        await self._write(None)

    def pop_unsaved(self) -> list[RunFrame]:
        """Return the unsaved frames after the block; they are saved with the end of the run."""
        self._close_merged()
        unsaved, self._waiting = self._waiting, []
        return unsaved

    def _merge(self, kind: type[StreamDelta | ThinkingDelta], piece: str) -> None:
        if kind is not self._merging:
            self._close_merged()
            self._merging = kind
        self._pieces.append(piece)

    def _close_merged(self) -> None:
        if self._merging is not None:
            self._waiting.append(self._merging(delta="".join(self._pieces)))
            self._merging, self._pieces = None, []

    async def _keep_saving(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._has_more.wait()
            await asyncio.sleep(max(0.0, self._next_save_at - loop.time()))
            try:
                await self._write(None)
            except Exception as error:  # noqa: BLE001  (raised by the next `say`)
                self._failure = error
                return

    async def _write(self, step: StepSaved | None) -> None:
        async with self._one_at_a_time:
            self._close_merged()
            frames, self._waiting = self._waiting, []
            self._has_more.clear()
            if frames or step is not None:
                clock = asyncio.get_running_loop().time
                began = clock()
                await self._save(step, frames)
                saved = clock()
                has_words = any(isinstance(frame, StreamDelta | ThinkingDelta) for frame in frames)
                self._next_save_at = saved + batch_seconds(saved - began) if has_words else 0.0
