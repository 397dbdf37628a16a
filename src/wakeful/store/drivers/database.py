"""The interface of the two database drivers."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from typing import Any, Generic, Protocol, TypeVar

from wakeful.core.errors import StoreBusy, StoreUnavailable
from wakeful.core.events import News

T = TypeVar("T")

Row = Mapping[str, Any]
Params = Mapping[str, Any]
Values = Sequence[Any]
Deliver = Callable[[Sequence[News]], None]


class Statements(Protocol):
    """The statements of one transaction, by the name they have in `sql/`."""

    news: list[News]  # delivered to subscribers on every node, once this transaction is committed

    @property
    def dialect(self) -> str: ...

    async def fetch(self, name: str, params: Params) -> Sequence[Row]:
        """Run one statement and return its rows."""
        ...

    async def fetch_many(self, name: str, params: Sequence[Params]) -> Sequence[Row]:
        """Run one statement that takes `rows(…)` for these and return its rows, in no particular order."""
        ...

    async def write_each(self, name: str, rows: Sequence[Values]) -> set[str]:
        """Run one statement that takes `rows(…)` for these and return the ids of those that it added or changed.

        Each row is a list of parameters in their order: the engine writes most of its rows this way, without looking up
        names.
        """
        ...


Work = Callable[[Statements], Coroutine[Any, Any, T]]


class SideConnection(Protocol):
    """A connection that belongs to one thread with a loop of its own, such as the heartbeat's."""

    async def fetch(self, name: str, params: Params) -> Sequence[Row]:
        """Run one statement in a transaction of its own."""
        ...

    async def close(self) -> None: ...


class Database(Protocol):
    """A database driver. Work passed to `write` may be run again, so it does nothing but rules and statements."""

    @property
    def dialect(self) -> str: ...

    async def open(self, check_empty: Callable[[], None] = ...) -> None:
        """Open it. If the file is missing or empty, `check_empty` is called first, and may raise."""
        ...

    async def close(self) -> None: ...

    async def write(
        self,
        work: Work[T],
        *,
        is_synced: bool = True,
        is_single: bool = False,
        is_repeatable: bool = False,
        is_long: bool = False,
    ) -> T:
        """Run work in one transaction and return when it is durable; if it need not be synced, when it is committed.

        After a lost connection it is tried again as long as it cannot have been committed; repeatable work, which
        changes nothing when it was done before, even then.

        Work that is a single statement in PostgreSQL is a transaction by itself there, without the round trips that
        begin and commit one; its result does not wait until other nodes are notified. Long work has statements whose
        time depends on the amount of data.
        """
        ...

    async def read(self, work: Work[T], *, is_single: bool = False, is_long: bool = False) -> T:
        """Run work that only reads, on one consistent snapshot. A single statement needs no round trips to get one.

        Long work, whose time depends on the amount of data, keeps no other reader waiting.
        """
        ...

    async def run_script(self, script: str) -> None:
        """Run the statements of a migration in one transaction."""
        ...

    def only_one_node(self) -> AbstractAsyncContextManager[None]:
        """Keep other nodes from changing the schema at the same time."""
        ...

    async def side_connection(self) -> SideConnection: ...

    def listen(self, deliver: Deliver) -> None:
        """Call this with the news of every transaction that is committed, here or on another node."""
        ...

    async def size(self) -> int:
        """Return how many bytes it takes on disk."""
        ...

    async def checkpoint(self) -> None:
        """Move the journal into the database file; a database server does this by itself."""
        ...

    async def has_agents(self) -> bool:
        """Return whether anyone has worked with this store, with or without our tables in it."""
        ...

    async def read_clock(self) -> int | None:
        """Return the server's time in microseconds since 1970, or None where this machine's clock is the clock."""
        ...


# Batching: writes that wait at the same time are carried out together.


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
