"""Writes that wait at the same time are carried out as one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Together(Generic[T, R]):
    """Collect the calls that come while a batch is under way into the next batch.

    One caller alone waits for nobody. If a batch fails, each of its calls is tried alone, so that one bad one cannot
    spoil the others.
    """

    def __init__(self, carry_out: Callable[[Sequence[T]], Awaitable[Sequence[R]]], *, most: int = 128) -> None:
        self._carry_out = carry_out
        self._most = most
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def __call__(self, item: T) -> R:
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
        return await future

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                await self._carry(batch)
        finally:
            # At once, not when the task is seen to be done: a call in between would wait for a worker that has left.
            self._worker = None

    async def _carry(self, batch: list[tuple[T, "asyncio.Future[R]"]]) -> None:
        try:
            results = await self._carry_out([item for item, _ in batch])
        except Exception as error:  # noqa: BLE001  (its caller gets it)
            if len(batch) == 1:
                if not batch[0][1].done():
                    batch[0][1].set_exception(error)
                return
            for each in batch:
                await self._carry([each])
            return
        for (_, future), result in zip(batch, results, strict=True):
            if not future.done():
                future.set_result(result)
