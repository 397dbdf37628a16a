"""A thread that owns a SQLite connection and runs jobs on it.

A job is a coroutine that awaits nothing but its own statements, and here those never suspend: so a whole transaction
runs in the thread with a single hop, and all jobs that wait are committed together, with those that arrive meanwhile.
"""

# pyright: reportUnknownMemberType=false
import asyncio
import contextlib
import logging
import os
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from collections.abc import Sequence as abc_Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Literal, NamedTuple, TypeVar, cast

import apsw
import orjson

from wakeful.core.errors import StoreUnavailable
from wakeful.core.events import News
from wakeful.store import rows as queries
from wakeful.store.drivers.database import Deliver, Params, Row, Values, Work
from wakeful.store.errors import BrokenReference, StoreFull, StoreReadOnly, StoreUnreadable
from wakeful.store.rows import from_micros, to_micros

# A sequence number of the embedded store that is kept twice: in the store, and in a small file beside it.
#
# A truncated or missing journal leaves an older store that opens without an error. So about a second after a change the
# number is raised in the store and, once that is synced, in the file. The file is never ahead of what is on the disk,
# so a power failure cannot look like a loss; and it needs no sync of its own.
# apsw's types name collections.abc.Buffer, which Python 3.11 does not have, so its methods count as partly unknown.
log = logging.getLogger(__name__)

SEQUENCE_FILE = "wakeful.sequence"
SOON = 1.0  # seconds from a change until it is noted
_WIDTH = 100  # bytes, always the same, so that it is overwritten in place and never grows on a full disk


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A store that is older than the file beside it."""

    number: int  # the last one in the file
    since: datetime | None  # writes after it may be missing; None: unknown
    until: datetime  # when the last number was written to the file


class Sequence:
    """Notes the number in the store and in the file. Used by the thread that writes."""

    def __init__(self, path: Path, now: Callable[[], datetime]) -> None:
        self._path = path
        self._now = now
        self._number: int | None = None  # None: not compared yet, so nothing is noted
        self._changes = 0  # of the connection, when it was last noted
        self._has_failed = False
        self._changed_at: float | None = None  # monotonic; of the first change since then

    def compare(self, connection: apsw.Connection) -> Loss | None:
        """Compare the store with the file, and go on from the higher number."""
        rows = cast("list[tuple[int, int]]", connection.execute("SELECT number, at FROM store_sequence").fetchall())
        number, at = rows[0]
        seen = self._read()
        if seen is None:
            if number:
                log.warning(
                    "the file with the store's sequence is missing or damaged, so a cut journal would not show",
                    extra={"path": str(self._path)},
                )
            seen = number, from_micros(at)
        self._number = max(number, seen[0])
        if seen[0] <= number:
            return None
        return Loss(number=seen[0], since=from_micros(at) if at else None, until=seen[1])

    def due_in(self, connection: apsw.Connection) -> float | None:
        """Return in how many seconds the number is to be noted; None if nothing has changed."""
        if self._number is None or connection.total_changes() == self._changes:
            return None
        if self._changed_at is None:
            self._changed_at = time.monotonic()
        return max(0.0, self._changed_at + SOON - time.monotonic())

    def note(self, connection: apsw.Connection) -> None:
        """Raise the number in the store, in a transaction of its own, and then in the file."""
        assert self._number is not None
        self._changed_at = None
        at = self._now()
        try:
            connection.execute("UPDATE store_sequence SET number = ?, at = ?", (self._number + 1, to_micros(at)))
            self._number += 1
            self._changes = connection.total_changes()
            self._write(self._number, at)
            self._has_failed = False
        except (apsw.Error, OSError) as error:  # such as a full disk: retried a second later, logged once
            if not self._has_failed:
                log.warning("the store's sequence was not noted", extra={"problem": str(error)})
            self._has_failed = True

    def _read(self) -> tuple[int, datetime] | None:
        try:
            stored: Any = orjson.loads(self._path.read_bytes())
            return int(stored["number"]), datetime.fromisoformat(stored["at"])
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def _write(self, number: int, at: datetime) -> None:
        _write(self._path, number, at)


def start_sequence(path: Path, now: datetime) -> None:
    """Create the file for a store from elsewhere, whose number counts."""
    _write(path, 0, now)


def _write(path: Path, number: int, at: datetime) -> None:
    text = orjson.dumps({"number": number, "at": at.isoformat()}).ljust(_WIDTH - 1) + b"\n"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(handle, text, 0)
        os.ftruncate(handle, len(text))
    finally:
        os.close(handle)


# apsw's types name collections.abc.Buffer, which Python 3.11 does not have, so its methods count as partly unknown.
T = TypeVar("T")

_MAX_PER_COMMIT = 256

How = Literal["synced", "unsynced", "bare"]
"""Durable before the caller gets its result; committed only; or without a transaction."""


class SqliteStatements:
    """Statements on one connection; they never suspend."""

    dialect = "sqlite"

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.news: list[News] = []
        self._queries = queries.for_sqlite()
        self._columns: dict[str, tuple[str, ...]] = {}

    async def fetch(self, name: str, params: Params) -> abc_Sequence[Row]:
        query = self._queries[name]
        return self._rows(name, self.connection.execute(query.sql, query.in_order(params)))

    async def fetch_many(self, name: str, params: abc_Sequence[Params]) -> abc_Sequence[Row]:
        if not params:
            return []
        query = self._queries[name]
        return self._rows(name, self.connection.executemany(query.sql, [query.in_order(each) for each in params]))

    async def write_each(self, name: str, rows: abc_Sequence[Values]) -> set[str]:
        sql, id_place = self._queries[name].sql, self._queries[name].names.index("id")
        cursor = self.connection.cursor()
        written: set[str] = set()
        for row in rows:
            cursor.execute(sql, row)
            if self.connection.changes():
                written.add(row[id_place])
        return written

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
    """One connection, one thread, one queue."""

    def __init__(
        self,
        name: str,
        connect: Callable[[], apsw.Connection],
        *,
        is_writer: bool,
        deliver: Deliver = lambda _news: None,
        sequence: Sequence | None = None,
    ) -> None:
        self._connect = connect
        self._sequence = sequence
        self._is_writer = is_writer
        self._begin = "BEGIN IMMEDIATE" if is_writer else "BEGIN"
        self._deliver = deliver
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._waiting: deque[_Job | None] = deque()  # taken out of the queue, and not begun
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)

    async def start(self) -> "SqliteThread":
        """Open the connection, or raise the error that keeps it from opening."""
        self._thread.start()
        await self._ready
        return self

    async def stop(self) -> None:
        """Finish the jobs in the queue and close the connection."""
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    async def do(self, work: Work[T], how: How = "synced") -> T:
        """Run work in the thread and return its result."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.put(_Job(work, how, future))
        return await future

    def _main(self) -> None:
        loop = self._ready.get_loop()
        try:
            self._statements = SqliteStatements(self._connect())
        except Exception as error:  # noqa: BLE001  (`start` raises it)
            loop.call_soon_threadsafe(self._ready.set_exception, error)
            return
        loop.call_soon_threadsafe(self._ready.set_result, None)
        while True:
            self._take_in(self._wait())
            while self._waiting:
                first = self._waiting.popleft()
                if first is None:
                    self._note_sequence(within=SOON)
                    self._statements.connection.close()
                    return
                self._carry_out(first)
                self._note_sequence()

    def _wait(self) -> _Job | None:
        """Wait for work; meanwhile the sequence is noted when it is due."""
        while (seconds := self._note_sequence()) is not None:
            with contextlib.suppress(Empty):
                return self._jobs.get(timeout=seconds)
        return self._jobs.get()

    def _note_sequence(self, within: float = 0.0) -> float | None:
        """Save the sequence number if that is due, or return in how many seconds it is."""
        if self._sequence is None:
            return None
        connection = self._statements.connection
        seconds = self._sequence.due_in(connection)
        if seconds is None or seconds > within:
            return seconds
        self._sequence.note(connection)
        return self._sequence.due_in(connection)

    def _take_in(self, *jobs: _Job | None) -> None:
        self._waiting.extend(jobs)
        while not self._jobs.empty():
            self._waiting.append(self._jobs.get())

    def _carry_out(self, first: _Job) -> None:
        """Commit waiting jobs together; if one fails, run each in its own transaction, so that only that one fails."""
        if first.how == "bare":
            self._carry_out_alone(first)
            return
        self._take_in()
        how: How = "synced" if any(job and job.how == "synced" for job in (first, *self._waiting)) else "unsynced"
        done: list[_Job] = []
        results: list[Any] = []
        try:
            with self._transaction(how):
                job: _Job | None = first
                while job is not None:
                    done.append(job)
                    results.append(_drive(job.work(self._statements)))
                    job = self._next_for(how) if len(done) < _MAX_PER_COMMIT else None
        except Exception as error:  # noqa: BLE001  (each meets its own error again below)
            self._statements.news.clear()
            if len(done) <= 1:  # none: the transaction could not even begin
                self._answer([(first, None, error)])
                return
            for job in done:
                self._carry_out_alone(job)
        else:
            self._answer([(job, result, None) for job, result in zip(done, results, strict=True)])

    def _next_for(self, how: How) -> _Job | None:
        """Return the next job, if it can be part of the open transaction."""
        if self._is_writer:  # a reader's snapshot is older than what its caller may just have written
            self._take_in()
        job = self._waiting[0] if self._waiting else None
        if job is None or job.how not in (how, "unsynced"):
            return None
        return self._waiting.popleft()

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
        with name_errors():
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
def name_errors(path: Path | None = None) -> Generator[None]:
    """Translate SQLite's errors. Only those at the server's start have the path: later ones are shown to users."""
    store = "The store" if path is None else f"The store {str(path)!r}"
    place = "the store" if path is None else repr(str(path))
    try:
        yield
    except apsw.FullError as error:
        raise StoreFull(place) from error
    except (apsw.NotADBError, apsw.CorruptError) as error:
        if path is None:  # it was opened with its key, and an EIO in the middle of a statement is SQLITE_CORRUPT
            raise StoreUnreadable(
                f"The store cannot be read ({error}): its disk fails, or the file is damaged. Nothing was changed. "
                "If this goes on while the disk is sound, stop the server and restore a backup."
            ) from error
        raise StoreUnreadable(
            f"The store {str(path)!r} cannot be read: it is damaged, or encrypted with another key than the device key "
            f"of this configuration directory ({error}). It was left as it is. Restore the right key or a backup from "
            f"{str(path.parent / 'backups')!r}."
        ) from error
    except apsw.ReadOnlyError as error:
        raise StoreReadOnly(
            f"{store} cannot be written ({error}). Nothing was changed. Make the file, its directory and its disk "
            "writable for the server's user."
        ) from error
    except apsw.NoMemError as error:
        raise StoreUnavailable(
            f"There is not enough memory to use {place}. Nothing was changed. Free some and try again."
        ) from error
    except apsw.IOError as error:
        if path is not None and shutil.disk_usage(path.parent).free == 0:  # the journal's index could not be created
            raise StoreFull(place) from error
        # A commit whose sync failed is found in the journal if the process dies before the next one overwrites it.
        raise StoreUnavailable(
            f"{store} cannot be written or read ({error}). Look before you try again: what you asked for may be done.",
            is_in_doubt=True,
        ) from error
    except (apsw.CantOpenError, apsw.PermissionsError, apsw.BusyError) as error:
        raise StoreUnavailable(f"{store} cannot be written ({error}). Nothing was changed.") from error
    except apsw.ConstraintError as error:
        raise BrokenReference(str(error)) from error
