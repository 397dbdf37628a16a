"""Work in tasks of their own, whose events are followed: one (`Followed`), or several at once (`merge_events`)."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import Any, Generic, TypeVar

from wakeful.core.clock import Clock
from wakeful.core.events import RunEvent, Waiting
from wakeful.runs.executor import Stop

Say = Callable[[RunEvent], Awaitable[None]]  # returns when the event is saved and published
Worker = Callable[[Say], Awaitable[None]]


async def merge_events(
    workers: Sequence[Worker], tasks: set[asyncio.Task[Any]], *, at_once: int
) -> AsyncGenerator[RunEvent]:
    """Run the workers, `at_once` in parallel, and yield their events.

    A worker waits until its event is consumed, so a step is durable before it continues. While they run, their tasks
    are in `tasks`, so that the end of the run can cancel them.
    """
    queue: asyncio.Queue[tuple[RunEvent, asyncio.Event] | None] = asyncio.Queue()  # None: one is done
    slots = asyncio.Semaphore(at_once)

    async def say(event: RunEvent) -> None:
        consumed = asyncio.Event()
        queue.put_nowait((event, consumed))
        await consumed.wait()

    async def work(worker: Worker) -> None:
        async with slots:
            await worker(say)

    begun = [asyncio.create_task(work(worker)) for worker in workers]
    tasks.update(begun)
    for task in begun:
        task.add_done_callback(lambda _: queue.put_nowait(None))
    left = len(begun)
    while left:
        said = await queue.get()
        if said is None:
            left -= 1
            continue
        event, consumed = said
        yield event
        consumed.set()
    tasks.difference_update(begun)
    for task in begun:
        task.result()  # raises the error of a worker that failed


T = TypeVar("T")
FIRST_SHOWN = 3.0  # seconds of silence until the first `waiting` frame
EVERY = 20.0  # then at 10 s, 20 s, 40 s, … so that a stream is never silent for half a minute
_STEPS = (FIRST_SHOWN, 10.0)
_MOMENT = 0.1  # seconds
_MAX_QUEUED = 64  # events; beyond, the work waits for its consumer
Describe = Callable[[float], Waiting | None]  # the frame after that many seconds of waiting; None: no frame


def next_step(waited: float) -> float:
    """Return after how many seconds of waiting the next frame is due."""
    return next((step for step in _STEPS if waited < step), (waited // EVERY + 1) * EVERY)


async def pause(clock: Clock, seconds: float, nudged: asyncio.Event) -> None:
    """Wait for some seconds, or until nudged; it may return early, so the caller checks the clock again."""
    await clock.wait(clock.now() + timedelta(seconds=seconds), nudged)


class Followed(Generic[T]):
    """Work in a task of its own. `events` yields the events that it says, and `waiting` frames while it is silent."""

    result: T

    def __init__(
        self,
        clock: Clock,
        work: "Callable[[Followed[T]], Coroutine[Any, Any, T]]",
        describe: Describe = lambda _: None,
        *,
        is_shown: Callable[[RunEvent], bool] = lambda _: True,  # whether people see an event
        until: Callable[[], float] = lambda: float("inf"),  # a deadline by the monotonic clock; raises if it has passed
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
        """Restart the count of how long the work has been silent."""
        self.alive_at = self._clock.monotonic()

    async def say(self, event: RunEvent) -> None:
        """Queue an event; waits while the consumer is far behind."""
        self._said.append(event)
        self._news.set()
        while len(self._said) >= _MAX_QUEUED:
            self._room.clear()
            await self._room.wait()

    def explain(self, describe: Describe) -> None:
        """Use this function for `waiting` frames from now on; the first one is due in 0.1 s."""
        self._describe = describe
        asyncio.get_running_loop().call_later(_MOMENT, self._nudge)

    def _nudge(self) -> None:
        self._is_at_once = True
        self._news.set()

    async def events(self, tasks: "set[asyncio.Task[Any]]", stop: Stop | None = None) -> AsyncGenerator[RunEvent]:
        """Start the work and yield its events and its waiting; then `result` is set.

        Its task is in `tasks` while it runs, so that the end of the run can cancel it. A stop request cancels it.
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
                        continue  # saving the frame took time, so check the clock again
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
        task.exception()  # retrieved, so that asyncio does not log it
