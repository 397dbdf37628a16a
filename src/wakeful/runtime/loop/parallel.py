"""Run several workers in parallel, and merge their events into one stream."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any

from wakeful.domain.events import RunEvent

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
