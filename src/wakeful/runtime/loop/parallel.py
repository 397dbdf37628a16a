"""Several workers at once, heard as one stream of events."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any

from wakeful.domain.events import RunEvent

Say = Callable[[RunEvent], Awaitable[None]]  # returns when it is saved and shown
Worker = Callable[[Say], Awaitable[None]]


class Chorus:
    """Whoever says something waits until it is heard, so a step is durable before its worker goes on."""

    def __init__(self) -> None:
        self._said: asyncio.Queue[tuple[RunEvent, asyncio.Event] | None] = asyncio.Queue()  # None: one is done

    async def say(self, event: RunEvent) -> None:
        heard = asyncio.Event()
        self._said.put_nowait((event, heard))
        await heard.wait()

    async def listen(
        self, workers: Sequence[Worker], tasks: set[asyncio.Task[Any]], *, at_once: int
    ) -> AsyncGenerator[RunEvent]:
        """Let them work, so many at once, until all are done. Their tasks stand in `tasks` for whoever ends them."""
        slots = asyncio.Semaphore(at_once)

        async def work(worker: Worker) -> None:
            async with slots:
                await worker(self.say)

        begun = [asyncio.create_task(work(worker)) for worker in workers]
        tasks.update(begun)
        for task in begun:
            task.add_done_callback(lambda _: self._said.put_nowait(None))
        left = len(begun)
        while left:
            said = await self._said.get()
            if said is None:
                left -= 1
                continue
            event, heard = said
            yield event
            heard.set()
        tasks.difference_update(begun)
        for task in begun:
            task.result()  # what one could not answer for itself comes out here
