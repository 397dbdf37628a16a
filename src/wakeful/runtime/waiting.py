"""Waiting that shows: while a piece of work says nothing, its follower says what it waits for and since when."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import nullcontext
from datetime import timedelta
from typing import Any, Generic, TypeVar

from wakeful.clock import Clock
from wakeful.domain.events import RunEvent, Waiting
from wakeful.runtime.executor import Stop

T = TypeVar("T")

FIRST_SHOWN = 3.0  # seconds of silence after which waiting is shown; people begin to wonder
EVERY = 20.0  # then at 10 s, 20 s, 40 s, … so that a stream is never silent for half a minute
_STEPS = (FIRST_SHOWN, 10.0)
_MOMENT = 0.1  # seconds
_MOST_UNHEARD = 64  # events; beyond, the work waits for its follower

Describe = Callable[[float], Waiting | None]  # what is waited for, after so many seconds; None: nothing to tell


def next_step(waited: float) -> float:
    """Return after how many seconds of waiting it is told the next time."""
    return next((step for step in _STEPS if waited < step), (waited // EVERY + 1) * EVERY)


async def pause(clock: Clock, seconds: float, nudged: asyncio.Event) -> None:
    """Wait by the clock, or until nudged; perhaps shorter, so the caller looks at the clock again."""
    await clock.wait(clock.now() + timedelta(seconds=seconds), nudged)


class Followed(Generic[T]):
    """A piece of work in a task of its own. It says events, and `events` passes them on and tells of its silences."""

    result: T

    def __init__(
        self,
        clock: Clock,
        work: "Callable[[Followed[T]], Coroutine[Any, Any, T]]",
        describe: Describe = lambda _: None,
        *,
        is_shown: Callable[[RunEvent], bool] = lambda _: True,  # whether people see an event
        until: Callable[[], float] = lambda: float("inf"),  # by the monotonic clock; raises if that is past
    ) -> None:
        self._clock = clock
        self._work = work
        self._describe = describe
        self._is_shown = is_shown
        self._until = until
        self._said: deque[RunEvent] = deque()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._is_at_once = False
        self.alive_at = clock.monotonic()  # the last sign of life

    @property
    def silent_for(self) -> float:
        return self._clock.monotonic() - self.alive_at

    def note_alive(self) -> None:
        """Count from here how long the work has been silent."""
        self.alive_at = self._clock.monotonic()

    async def say(self, event: RunEvent) -> None:
        """Pass on an event; waits while the follower is far behind."""
        self._said.append(event)
        self._news.set()
        while len(self._said) >= _MOST_UNHEARD:
            self._room.clear()
            await self._room.wait()

    def explain(self, describe: Describe) -> None:
        """Say by this function what is waited for from now on, the first time in a moment if it still is."""
        self._describe = describe
        asyncio.get_running_loop().call_later(_MOMENT, self._nudge)

    def _nudge(self) -> None:
        self._is_at_once = True
        self._news.set()

    async def events(self, tasks: "set[asyncio.Task[Any]]", stop: Stop | None = None) -> AsyncGenerator[RunEvent]:
        """Let it work, and yield what it says and what it waits for; afterwards there is its result.

        Its task stands in `tasks` for whoever ends the run. A wish to stop cuts it off.
        """
        task = asyncio.create_task(self._work(self))
        tasks.add(task)
        task.add_done_callback(lambda _: self._news.set())
        shown_at, waited = self._clock.monotonic(), 0.0
        try:
            while True:
                self._news.clear()
                while self._said:
                    event = self._said.popleft()
                    self._room.set()
                    if self._is_shown(event):
                        shown_at, waited = self._clock.monotonic(), 0.0
                    yield event
                if task.done():
                    break
                now, until = self._clock.monotonic(), self._until()
                if now - shown_at >= next_step(waited) or self._is_at_once:
                    waited, self._is_at_once = now - shown_at, False
                    frame = self._describe(waited)
                    if frame is not None:
                        yield frame
                        continue  # the frame took time to save: look again
                left = min(shown_at + next_step(waited), until) - now
                with nullcontext() if stop is None else stop.cuts_off():
                    await pause(self._clock, left, self._news)
        finally:
            await _end(task)
            tasks.discard(task)
        self.result = task.result()


async def _end(task: "asyncio.Task[Any]") -> None:
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
    if not task.cancelled():
        task.exception()  # its follower has it, or no longer wants it
