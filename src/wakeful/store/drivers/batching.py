"""Batching: writes that wait at the same time are carried out together."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextvars import Context
from typing import Generic, TypeVar

from wakeful.store.errors import StoreBusy, StoreUnavailable

T = TypeVar("T")
R = TypeVar("R")


class Together(Generic[T, R]):
    """Collect the calls that are made while batches are running into the next batch.

    A single caller does not wait. Items with the same key are carried out one after the other; by default every item
    has a key of its own. If a batch fails, each of its calls is retried alone, so that one bad item fails by itself.
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
        self._keys: set[Hashable] = set()  # of the items that are being carried out

    async def __call__(self, item: T) -> R:
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if len(self._workers) < self._at_once:
            worker = asyncio.create_task(self._work(), context=Context())  # not of one item alone
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
            # Here, not in a done callback: a call in between would wait for a worker that has ended.
            self._workers.discard(asyncio.current_task())

    def _take(self) -> list[tuple[T, "asyncio.Future[R]"]]:
        """Take this worker's share of the waiting items; one whose key is in use is left to the worker that has it."""
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
            # If the store is unavailable, retrying helps nobody, and work in doubt must not be repeated. A call that
            # needs a locked row must not fail the others.
            is_unavailable = isinstance(error, StoreUnavailable) and not isinstance(error, StoreBusy)
            if len(batch) == 1 or is_unavailable:
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
