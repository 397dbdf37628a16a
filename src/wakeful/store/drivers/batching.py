"""Writes that wait at the same time are carried out as one."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

from wakeful.store.errors import StoreBusy, StoreUnavailable

T = TypeVar("T")
R = TypeVar("R")


class Together(Generic[T, R]):
    """Collect the calls that come while batches are under way into the next batch.

    One caller alone waits for nobody. Of what has the same key, one is carried out after the other; without a key, each
    item is its own. If a batch fails, each of its calls is tried alone, so that one bad one cannot spoil the others.
    """

    def __init__(
        self,
        carry_out: Callable[[Sequence[T]], Awaitable[Sequence[R]]],
        *,
        most: int = 128,
        at_once: int = 1,
        key: Callable[[T], Hashable] = id,
    ) -> None:
        self._carry_out = carry_out
        self._most = most
        self._at_once = at_once
        self._key = key
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._workers: set[asyncio.Task[None]] = set()
        self._under_way = 0
        self._keys: set[Hashable] = set()  # of what is under way

    async def __call__(self, item: T) -> R:
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if len(self._workers) < self._at_once:
            worker = asyncio.create_task(self._work())
            self._workers.add(worker)
        return await future

    async def _work(self) -> None:
        try:
            while batch := self._take():
                self._under_way += 1
                try:
                    await self._carry(batch)
                finally:
                    self._under_way -= 1
                    self._keys.difference_update([self._key(item) for item, _ in batch])
        finally:
            # At once, not when the task is seen to be done: a call in between would wait for a worker that has left.
            self._workers.discard(asyncio.current_task())

    def _take(self) -> list[tuple[T, "asyncio.Future[R]"]]:
        """Take this worker's share of what waits. What is left because of its key is for the worker that has that."""
        share = min(self._most, -(-len(self._waiting) // (self._at_once - self._under_way)))
        batch: list[tuple[T, asyncio.Future[R]]] = []
        left: list[tuple[T, asyncio.Future[R]]] = []
        for place, each in enumerate(self._waiting):
            if len(batch) == share:
                left += self._waiting[place:]
                break
            key = self._key(each[0])
            if key in self._keys:
                left.append(each)
            else:
                self._keys.add(key)
                batch.append(each)
        self._waiting = left
        return batch

    async def _carry(self, batch: list[tuple[T, "asyncio.Future[R]"]]) -> None:
        try:
            results = await self._carry_out([item for item, _ in batch])
        except Exception as error:  # noqa: BLE001  (its caller gets it)
            # No call is to blame for a store that is away, and what is in doubt must not be done again. One that needs
            # a row that someone holds must not keep the others from theirs.
            is_away = isinstance(error, StoreUnavailable) and not isinstance(error, StoreBusy)
            if len(batch) == 1 or is_away:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                return
            for each in batch:
                await self._carry([each])
            return
        for (_, future), result in zip(batch, results, strict=True):
            if not future.done():
                future.set_result(result)
