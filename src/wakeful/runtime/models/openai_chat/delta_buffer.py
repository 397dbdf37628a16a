"""A buffer for the pieces of an answer, which merges pieces that arrive close together."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

WINDOW = 0.02  # seconds; pieces that arrive within this time after the last read are merged
MAX_WAITING = 4 * 1024 * 1024  # characters; a reader that is further behind makes the writer wait


Target = TypeVar("Target")


class Silence(Exception):
    """Nothing arrived until the reader's deadline."""


class DeltaBuffer(Generic[Target]):
    """One writer, one reader. The first piece is passed on at once; none is held back longer than the window."""

    def __init__(self, window: float = WINDOW) -> None:
        self._loop = asyncio.get_running_loop()
        self._window = window
        self._pieces: list[tuple[Target, list[str]]] = []
        self._waiting = 0  # characters
        self._taken_at = float("-inf")
        self._is_closed = False
        self._failure: BaseException | None = None
        self._reader: asyncio.Future[None] | None = None
        self._is_listening = False  # the reader waits for any piece, not only for the end of the window
        self._room = asyncio.Event()

    def put(self, target: Target, text: str) -> None:
        """Add a piece; `notify` wakes the reader."""
        if self._pieces and self._pieces[-1][0] is target:
            self._pieces[-1][1].append(text)
        else:
            self._pieces.append((target, [text]))
        self._waiting += len(text)

    def notify(self) -> None:
        """Wake a reader that waits for pieces."""
        if self._is_listening and self._pieces:
            self._wake()

    def look_again(self) -> None:
        """Let a waiting reader compute its deadline again."""
        if self._is_listening:
            self._wake()

    def close(self, failure: BaseException | None = None) -> None:
        """Close the buffer. The reader first gets the rest, then the failure."""
        if not self._is_closed:
            self._is_closed = True
            self._failure = failure
            self._room.set()
            self._wake()

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def is_full(self) -> bool:
        return self._waiting > MAX_WAITING and not self._is_closed

    async def make_room(self) -> None:
        """Wait while the reader is too far behind."""
        while self.is_full:
            self._room.clear()
            await self._room.wait()

    async def wait(self, patience: Callable[[], float]) -> None:
        """Return when there is something to take; `patience` returns the deadline."""
        while not self._pieces and not self._is_closed:
            left = patience() - self._loop.time()
            if left <= 0:
                raise Silence
            self._is_listening = True
            try:
                await self._sleep(left)
            finally:
                self._is_listening = False
        if not self._pieces and self._failure is not None:
            raise self._failure

    async def take(self, patience: Callable[[], float]) -> list[tuple[Target, str]]:
        """Return the pieces so far, merged; an empty list means the end."""
        await self.wait(patience)
        held = self._taken_at + self._window - self._loop.time()
        if held > 0 and not self._is_closed:
            await self._sleep(held)
        pieces = [(target, "".join(texts)) for target, texts in self._pieces]
        self._pieces.clear()
        self._waiting = 0
        self._room.set()
        self._taken_at = self._loop.time()
        return pieces

    async def _sleep(self, seconds: float) -> None:
        # A bare timer: asyncio.timeout and a queue would take longer than the rest of a delta's handling.
        self._reader = self._loop.create_future()
        timer = self._loop.call_later(seconds, self._wake)
        try:
            await self._reader
        finally:
            timer.cancel()
            self._reader = None

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
