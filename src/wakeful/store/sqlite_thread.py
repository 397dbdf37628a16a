"""A thread that owns a SQLite connection and carries out the work that is handed to it.

Work is a coroutine that awaits nothing but its own statements, and here those never suspend: so a whole transaction
runs in the thread with a single hop, and all work that waits there is committed together.
"""
# apsw's types name collections.abc.Buffer, which Python 3.11 does not have, so its methods count as partly unknown.
# pyright: reportUnknownMemberType=false

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Generator, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal, NamedTuple, TypeVar

import apsw

from wakeful.store import queries
from wakeful.store.database import Params, Row, Work
from wakeful.store.errors import BrokenReference, StoreFull, StoreUnavailable, StoreUnreadable

T = TypeVar("T")

_MOST_PER_COMMIT = 256

Deliver = Callable[[Sequence[str]], None]
How = Literal["synced", "unsynced", "bare"]
"""On the disk before it is answered; committed only; or without a transaction around it."""


class SqliteStatements:
    """Statements on one connection; they never suspend."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.news: list[str] = []
        self._queries = queries.for_sqlite()
        self._columns: dict[str, tuple[str, ...]] = {}

    async def fetch(self, name: str, params: Params) -> Sequence[Row]:
        return self._rows(name, self.connection.execute(self._queries[name], params))

    async def fetch_many(self, name: str, params: Sequence[Params]) -> Sequence[Row]:
        if not params:
            return []
        return self._rows(name, self.connection.executemany(self._queries[name], params))

    def tell(self, news: str) -> None:
        self.news.append(news)

    def _rows(self, name: str, cursor: apsw.Cursor) -> list[Row]:
        columns = self._columns.get(name)
        if columns is None:
            try:
                columns = self._columns[name] = tuple(column[0] for column in cursor.get_description())
            except apsw.ExecutionCompleteError:
                return []
        return [dict(zip(columns, row, strict=True)) for row in cursor]


class _Job(NamedTuple):
    work: Callable[[SqliteStatements], Coroutine[Any, Any, Any]]
    how: How
    future: "asyncio.Future[Any]"


class SqliteThread:
    """One connection, one thread, one queue. `begin` says which transactions it makes."""

    def __init__(self, name: str, connect: Callable[[], apsw.Connection], begin: str, deliver: Deliver) -> None:
        self._connect = connect
        self._begin = begin
        self._deliver = deliver
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)

    async def start(self) -> None:
        """Open the connection, or raise what keeps it from opening."""
        self._thread.start()
        await self._ready

    async def stop(self) -> None:
        """Finish what was handed over and close the connection."""
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    async def do(self, work: Work[T], how: How = "synced") -> T:
        """Hand over work and wait for its result."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.put(_Job(work, how, future))
        return await future

    def _main(self) -> None:
        loop = self._ready.get_loop()
        try:
            self._statements = SqliteStatements(self._connect())
        except Exception as error:  # noqa: BLE001  (whoever waits for the start gets it)
            loop.call_soon_threadsafe(self._ready.set_exception, error)
            return
        loop.call_soon_threadsafe(self._ready.set_result, None)
        is_open = True
        while is_open:
            waiting = self._take_waiting()
            is_open = waiting[-1] is not None
            jobs = [job for job in waiting if job is not None]
            if jobs:
                self._carry_out(jobs)
        self._statements.connection.close()

    def _take_waiting(self) -> list[_Job | None]:
        waiting = [self._jobs.get()]
        while waiting[-1] is not None and len(waiting) < _MOST_PER_COMMIT and not self._jobs.empty():
            waiting.append(self._jobs.get())
        return waiting

    def _carry_out(self, jobs: list[_Job]) -> None:
        """Commit all jobs together; if one of them fails, carry out each alone so that only that one does."""
        if len(jobs) > 1 and all(job.how != "bare" for job in jobs):
            how: How = "synced" if any(job.how == "synced" for job in jobs) else "unsynced"
            try:
                with self._transaction(how):
                    results = [_drive(job.work(self._statements)) for job in jobs]
            except Exception:  # noqa: BLE001  (each job meets its own error again below)
                self._statements.news.clear()
            else:
                self._answer([(job, result, None) for job, result in zip(jobs, results, strict=True)])
                return
        for job in jobs:
            self._carry_out_alone(job)

    def _carry_out_alone(self, job: _Job) -> None:
        try:
            with self._transaction(job.how):
                result = _drive(job.work(self._statements))
        except Exception as error:  # noqa: BLE001  (its caller gets it)
            self._statements.news.clear()
            self._answer([(job, None, error)])
        else:
            self._answer([(job, result, None)])

    @contextlib.contextmanager
    def _transaction(self, how: How) -> Generator[None]:
        connection = self._statements.connection
        with name_errors(Path(connection.filename)):
            if how == "bare":
                yield
                return
            sync = _no_sync(connection) if how == "unsynced" else contextlib.nullcontext()
            with sync, transaction(connection, self._begin):
                yield

    def _answer(self, answers: list[tuple[_Job, Any, Exception | None]]) -> None:
        news, self._statements.news = self._statements.news, []

        def resolve() -> None:
            if news:
                self._deliver(news)
            for job, result, error in answers:
                if job.future.done():  # its caller was cancelled meanwhile
                    continue
                if error is None:
                    job.future.set_result(result)
                else:
                    job.future.set_exception(error)

        # The loop may be gone when a process is torn down in the middle of a write; the write itself stands.
        with contextlib.suppress(RuntimeError):
            answers[0][0].future.get_loop().call_soon_threadsafe(resolve)


@contextlib.contextmanager
def transaction(connection: apsw.Connection, begin: str) -> Generator[None]:
    """Commit what is done inside, or roll it back."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk makes SQLite roll back by itself; a second rollback would hide the real error.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def _no_sync(connection: apsw.Connection) -> Generator[None]:
    # The log is written in order: whatever is synced later makes this durable too.
    connection.execute("PRAGMA synchronous = NORMAL")
    try:
        yield
    finally:
        connection.execute("PRAGMA synchronous = FULL")


def _drive(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise RuntimeError("A transaction's work may await nothing but its own statements.")


@contextlib.contextmanager
def name_errors(path: Path) -> Generator[None]:
    """Say in our own words what the disk or the file has."""
    try:
        yield
    except apsw.FullError as error:
        raise StoreFull(path) from error
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise StoreUnreadable(
            f"The store {str(path)!r} cannot be read: it is damaged, or encrypted with another key than the device key "
            f"of this configuration directory ({error}). It was left as it is. Restore the right key or a backup from "
            f"{str(path.parent / 'backups')!r}."
        ) from error
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError, apsw.PermissionsError, apsw.BusyError) as error:
        raise StoreUnavailable(f"The store {str(path)!r} cannot be written ({error}). Nothing was changed.") from error
    except apsw.ConstraintError as error:
        raise BrokenReference(str(error)) from error
