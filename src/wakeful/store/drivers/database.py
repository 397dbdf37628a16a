"""The interface of the two database drivers."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar

from wakeful.domain.news import News

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
