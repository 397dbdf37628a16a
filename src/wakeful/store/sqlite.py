"""The embedded store: one SQLite file, one writer thread, one reader thread.

Work is a coroutine that awaits nothing but its own statements, and here those never suspend: so a whole transaction runs
in the writer thread with a single hop, and all work that waits there is committed together.
"""

import asyncio
import contextlib
import fcntl
import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

import apsw

from wakeful.store import queries
from wakeful.store.database import Listener, Params, Row, SideConnection, Statements, Work
from wakeful.store.errors import BrokenReference, StoreFull, StoreInUse, StoreUnavailable, StoreUnreadable

T = TypeVar("T")

_MOST_PER_COMMIT = 256
_BUSY_MS = 20_000


class SqliteDatabase:
    """A store in one file, held by one process."""

    dialect = "sqlite"

    def __init__(self, path: Path, key: bytes | None) -> None:
        self.path = path
        self._key = key
        self._lock: int | None = None
        self._writer: _Thread | None = None
        self._reader: _Thread | None = None
        self._listeners: list[Listener] = []

    async def open(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = _take_lock(self.path.with_name("wakeful.lock"))
        except OSError as error:
            raise StoreUnavailable(
                f"Cannot write in the data directory {str(self.path.parent)!r}: {error.strerror}. "
                "Make it writable for this user, or set WAKEFUL_DATA_DIR to another one."
            ) from error
        try:
            self._writer = await _Thread.start("wakeful-writer", self._connect, _run_together)
            self._reader = await _Thread.start("wakeful-reader", self._connect, _run_each)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        for thread in (self._reader, self._writer):
            if thread is not None:
                await thread.stop()
        self._reader = self._writer = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def write(self, work: Work[T]) -> T:
        return await _hand_over(self._writer, work, self._deliver)

    async def read(self, work: Work[T]) -> T:
        return await _hand_over(self._reader, work, self._deliver)

    async def run_script(self, script: str) -> None:
        async def work(statements: Statements) -> None:
            assert isinstance(statements, _Statements)
            statements.run_script(script)

        await self.write(work)

    def only_one_node(self) -> contextlib.AbstractAsyncContextManager[None]:
        return contextlib.nullcontext()  # the lock on the data directory has done it

    async def side_connection(self) -> SideConnection:
        return _Side(self._connect())

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    async def read_clock(self) -> int | None:
        return None

    async def copy_to(self, path: Path) -> None:
        """Copy the whole store, as encrypted as it is, to a new file."""

        async def work(statements: Statements) -> None:
            assert isinstance(statements, _Statements)
            statements.checkpoint()

        await _hand_over(self._writer, work, self._deliver, outside_transaction=True)
        await asyncio.to_thread(_copy_durably, self.path, path)

    def _deliver(self, news: Sequence[str]) -> None:
        for text in news:
            for listener in self._listeners:
                listener(text)

    def _connect(self) -> apsw.Connection:
        with _errors_named(self.path):
            connection = apsw.Connection(str(self.path))
            if self._key is not None:
                connection.pragma("cipher", "sqlcipher")
                connection.pragma("legacy", 4)
                connection.execute(f"PRAGMA key = \"x'{self._key.hex()}'\"")
            connection.set_busy_timeout(_BUSY_MS)
            connection.pragma("journal_mode", "wal")
            connection.pragma("synchronous", "FULL")
            connection.pragma("foreign_keys", True)
            connection.pragma("cache_size", -32_000)
            connection.pragma("journal_size_limit", 64 * 1024 * 1024)
        return connection


class _Job(NamedTuple):
    work: Callable[[Statements], Coroutine[Any, Any, Any]]
    future: "asyncio.Future[Any]"
    deliver: Callable[[Sequence[str]], None]
    outside_transaction: bool


class _Statements:
    """Statements on one connection; they never suspend."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._queries = queries.for_sqlite()
        self._columns: dict[str, tuple[str, ...]] = {}
        self.news: list[str] = []

    async def fetch(self, name: str, params: Params) -> Sequence[Row]:
        return self._rows(name, self._connection.execute(self._queries[name], params))

    async def fetch_many(self, name: str, params: Sequence[Params]) -> Sequence[Row]:
        if not params:
            return []
        return self._rows(name, self._connection.executemany(self._queries[name], params))

    def tell(self, news: str) -> None:
        self.news.append(news)

    def run_script(self, script: str) -> None:
        for _ in self._connection.execute(script):
            pass

    def checkpoint(self) -> None:
        self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def _rows(self, name: str, cursor: apsw.Cursor) -> list[Row]:
        columns = self._columns.get(name)
        if columns is None:
            try:
                columns = self._columns[name] = tuple(column[0] for column in cursor.get_description())
            except apsw.ExecutionCompleteError:
                return []
        return [dict(zip(columns, row, strict=True)) for row in cursor]


class _Thread:
    """A thread with a connection of its own that carries out the jobs handed to it."""

    def __init__(self, name: str, connect: Callable[[], apsw.Connection], run: "_RunJobs") -> None:
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._connect = connect
        self._run = run
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @classmethod
    async def start(cls, name: str, connect: Callable[[], apsw.Connection], run: "_RunJobs") -> "_Thread":
        thread = cls(name, connect, run)
        thread._thread.start()
        await thread._ready
        return thread

    async def stop(self) -> None:
        self.jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    def _main(self) -> None:
        loop = self._ready.get_loop()
        try:
            connection = self._connect()
        except Exception as error:
            loop.call_soon_threadsafe(self._ready.set_exception, error)
            return
        loop.call_soon_threadsafe(self._ready.set_result, None)
        statements = _Statements(connection)
        path = Path(connection.filename)
        is_open = True
        while is_open:
            waiting = self._take_waiting()
            is_open = waiting[-1] is not None
            jobs = [job for job in waiting if job is not None]
            if jobs:
                self._run(connection, statements, path, jobs)
        connection.close()

    def _take_waiting(self) -> list[_Job | None]:
        waiting = [self.jobs.get()]
        while waiting[-1] is not None and len(waiting) < _MOST_PER_COMMIT and not self.jobs.empty():
            waiting.append(self.jobs.get())
        return waiting


_RunJobs = Callable[[apsw.Connection, _Statements, Path, list[_Job]], None]


def _run_together(connection: apsw.Connection, statements: _Statements, path: Path, jobs: list[_Job]) -> None:
    """Commit all jobs in one transaction; if one of them fails, carry out each alone so that only that one does."""
    if len(jobs) > 1 and not any(job.outside_transaction for job in jobs):
        try:
            with _errors_named(path), _transaction(connection, "BEGIN IMMEDIATE"):
                results = [_drive(job.work(statements)) for job in jobs]
        except Exception:
            statements.news.clear()
        else:
            _answer([(job, result, None) for job, result in zip(jobs, results, strict=True)], statements)
            return
    _run_alone(connection, statements, path, jobs, "BEGIN IMMEDIATE")


def _run_each(connection: apsw.Connection, statements: _Statements, path: Path, jobs: list[_Job]) -> None:
    _run_alone(connection, statements, path, jobs, "BEGIN")


def _run_alone(
    connection: apsw.Connection, statements: _Statements, path: Path, jobs: list[_Job], begin: str
) -> None:
    for job in jobs:
        try:
            with _errors_named(path):
                if job.outside_transaction:
                    result = _drive(job.work(statements))
                else:
                    with _transaction(connection, begin):
                        result = _drive(job.work(statements))
        except Exception as error:
            statements.news.clear()
            _answer([(job, None, error)], statements)
        else:
            _answer([(job, result, None)], statements)


@contextlib.contextmanager
def _transaction(connection: apsw.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk makes SQLite roll back by itself; a second rollback would hide the real error.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _drive(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise RuntimeError("A transaction's work may await nothing but its own statements.")


def _answer(answers: list[tuple[_Job, Any, Exception | None]], statements: _Statements) -> None:
    news, statements.news = statements.news, []
    first = answers[0][0]

    def resolve() -> None:
        if news:
            first.deliver(news)
        for job, result, error in answers:
            if job.future.done():  # its caller was cancelled meanwhile
                continue
            if error is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(error)

    # The loop may be gone when a process is torn down in the middle of a write; the write itself stands.
    with contextlib.suppress(RuntimeError):
        first.future.get_loop().call_soon_threadsafe(resolve)


async def _hand_over(
    thread: _Thread | None,
    work: Work[T],
    deliver: Callable[[Sequence[str]], None],
    *,
    outside_transaction: bool = False,
) -> T:
    if thread is None:
        raise StoreUnavailable("The store is closed.")
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    thread.jobs.put(_Job(work, future, deliver, outside_transaction))
    return await future


class _Side:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._statements = _Statements(connection)

    async def fetch(self, name: str, params: Params) -> Sequence[Row]:
        with _errors_named(Path(self._connection.filename)), _transaction(self._connection, "BEGIN IMMEDIATE"):
            return await self._statements.fetch(name, params)

    async def close(self) -> None:
        self._connection.close()


@contextlib.contextmanager
def _errors_named(path: Path) -> Iterator[None]:
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


def _take_lock(path: Path) -> int:
    """Hold the data directory for this process; the lock goes when the process does, however it ends."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        pid = os.read(handle, 32).decode() or "unknown"
        os.close(handle)
        raise StoreInUse(path.parent, pid.strip()) from error
    os.ftruncate(handle, 0)
    os.write(handle, f"{os.getpid()}\n".encode())
    return handle


def _copy_durably(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = target.with_suffix(".partial")
    with source.open("rb") as original, partial.open("wb") as copy:
        while block := original.read(1024 * 1024):
            copy.write(block)
        copy.flush()
        os.fsync(copy.fileno())
    partial.chmod(0o600)
    partial.replace(target)
