"""The embedded store: one SQLite file, one process, and a thread each to write, to read and to checkpoint."""

# pyright: reportUnknownMemberType=false
import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import apsw

from wakeful.core.errors import StoreUnavailable
from wakeful.core.resources import remedy_of
from wakeful.store.drivers.database import Deliver, Params, Row, SideConnection, Statements, Work
from wakeful.store.drivers.sqlite_thread import Loss, SqliteStatements, SqliteThread, name_errors, transaction
from wakeful.store.drivers.sqlite_thread import Sequence as StoreSequence
from wakeful.store.errors import StoreClosed, StoreInUse, StoreUnreadable

# apsw's types name collections.abc.Buffer, which Python 3.11 does not have, so its methods count as partly unknown.
T = TypeVar("T")

_BUSY_MS = 20_000
_PREPARED = 512  # the most that apsw takes
_INCREMENTAL = 2  # of auto_vacuum


class FreePages(NamedTuple):
    """Pages of a file, and how many of them are free for new data."""

    free: int
    total: int
    page_bytes: int
    can_cut: bool  # the file can get smaller

    @property
    def bytes(self) -> int:
        return self.free * self.page_bytes


class SqliteDatabase:
    """A store in one file, held by one process."""

    dialect = "sqlite"

    def __init__(self, path: Path, key: bytes | None, sequence: StoreSequence | None = None) -> None:
        self.path = path
        self._key = key
        self._sequence = sequence
        self._lock: int | None = None
        self._writer: SqliteThread | None = None
        self._reader: SqliteThread | None = None
        self._checkpointer: SqliteThread | None = None
        self._deliver: Deliver = lambda _news: None

    async def open(self, check_empty: Callable[[], None] = lambda: None) -> None:
        self._lock = _take_lock(self.path.parent)
        try:
            if not size_of(self.path):
                check_empty()  # before SQLite sees it: it deletes the journal of a file that is missing or empty
            # For its owner alone, and so are the log and the index that SQLite makes after it.
            with contextlib.suppress(OSError):  # SQLite's own error is better
                self.path.touch(mode=0o600)
            self._writer = await SqliteThread(
                "wakeful-writer", self.connect, is_writer=True, deliver=self._deliver, sequence=self._sequence
            ).start()
            self._reader = await SqliteThread("wakeful-reader", self.connect, is_writer=False).start()
            self._checkpointer = await SqliteThread("wakeful-checkpoint", self.connect, is_writer=False).start()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        # SQLite moves the journal into the file when the last connection is closed.
        for thread in (self._checkpointer, self._reader, self._writer):
            if thread is not None:
                await thread.stop()
        self._checkpointer = self._reader = self._writer = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def write(
        self,
        work: Work[T],
        *,
        is_synced: bool = True,
        is_single: bool = False,  # noqa: ARG002  (there are no round trips to save)
        is_repeatable: bool = False,  # noqa: ARG002  (there is no connection to lose)
        is_long: bool = False,  # noqa: ARG002  (no answer is waited for)
    ) -> T:
        return await _opened(self._writer).do(work, "synced" if is_synced else "unsynced")

    async def read(self, work: Work[T], *, is_single: bool = False, is_long: bool = False) -> T:  # noqa: ARG002
        return await _opened(self._checkpointer if is_long else self._reader).do(work)

    async def run_script(self, script: str) -> None:
        async def work(statements: Statements) -> None:
            assert isinstance(statements, SqliteStatements)
            for _ in statements.connection.execute(script):
                pass

        await self.write(work)

    def only_one_node(self) -> contextlib.AbstractAsyncContextManager[None]:
        return contextlib.nullcontext()  # the lock on the data directory has done it

    async def side_connection(self) -> SideConnection:
        return _SqliteSide(self.connect())

    def listen(self, deliver: Deliver) -> None:
        self._deliver = deliver

    async def size(self) -> int:
        """Count the file and what is still in its journal."""
        files = (self.path.with_name(f"{self.path.name}{end}") for end in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    async def read_clock(self) -> int | None:
        return None

    async def checkpoint(self) -> None:
        """Move the journal into the file, while others read and write."""
        await _do_bare(self._checkpointer, _checkpoint)

    async def enable_vacuum(self) -> None:
        """Rewrite a file of an earlier version, so that freed pages can be cut off. It needs room on the disk."""

        def rewrite(connection: apsw.Connection) -> None:
            has_room = shutil.disk_usage(self.path.parent).free > 3 * size_of(self.path)
            # Without room it works as before; the file only never gets smaller.
            if connection.pragma("auto_vacuum") != _INCREMENTAL and has_room:
                connection.pragma("auto_vacuum", _INCREMENTAL)
                connection.execute("VACUUM")
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

        await _do_bare(self._writer, rewrite)

    async def free_pages(self) -> FreePages:
        """Return how much of the file is not used."""

        def read(connection: apsw.Connection) -> FreePages:
            connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()  # else the pragmas are those of before
            can_cut = connection.pragma("auto_vacuum") == _INCREMENTAL
            free, total, size = (connection.pragma(name) for name in ("freelist_count", "page_count", "page_size"))
            return FreePages(free=int(free), total=int(total), page_bytes=int(size), can_cut=can_cut)

        return await _do_bare(self._reader, read)

    async def cut_off(self, pages: int) -> None:
        """Give free pages back to the disk: one short transaction, atomic as any other."""

        def cut(connection: apsw.Connection) -> None:
            for _ in connection.execute(f"PRAGMA incremental_vacuum({pages:d})"):
                pass

        await _do_bare(self._writer, cut)

    async def leave_journal(self) -> None:
        """Close later without moving the journal into the file, so that both stay as they were found."""
        await _do_bare(self._writer, lambda each: each.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1))

    async def find_loss(self) -> Loss | None:
        """Return what is missing if the store is older than the file beside it, and count changes from now on."""
        return None if self._sequence is None else await _do_bare(self._writer, self._sequence.compare)

    async def has_agents(self) -> bool:
        return await _do_bare(self._reader, has_agents)

    async def copy_to(self, path: Path) -> None:
        """Copy the whole store, as encrypted as it is, to a new file."""

        def copy(connection: apsw.Connection) -> None:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            _copy_durably(self.path, path)

        await _do_bare(self._writer, copy)

    def connect(self) -> apsw.Connection:
        with name_errors(self.path):
            # Every row of an executemany pushes one prepared statement out of apsw's cache. With the usual 100 places
            # a batch empties it, and each statement is parsed and planned again, at 0.3 ms for a claim.
            connection = apsw.Connection(str(self.path), statementcachesize=_PREPARED)
            if self._key is not None:
                # AEGIS costs next to nothing per page; SQLCipher's format would double the time of every commit.
                connection.pragma("cipher", "aegis")
                connection.execute(f"PRAGMA key = 'raw:{self._key.hex()}'")
            connection.set_busy_timeout(_BUSY_MS)
            # One plan per statement. Otherwise SQLite plans again for every value that is bound, ten times the work.
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            # SQLite's own knows only the letters of ASCII; PostgreSQL's knows those of titles in any language.
            connection.create_scalar_function("lower", _lower, 1, deterministic=True)
            if not size_of(self.path):  # so that freed pages can be cut off; `enable_vacuum` is for other files
                connection.pragma("auto_vacuum", _INCREMENTAL)
            connection.pragma("journal_mode", "wal")
            connection.pragma("synchronous", "FULL")
            connection.pragma("foreign_keys", True)
            connection.pragma("cache_size", -8_000)
            # A page that changes often is copied into the file once per checkpoint, so these should be rare. This one
            # delays the commit that makes it; there is one a minute besides, which delays nothing.
            connection.pragma("wal_autocheckpoint", 2_000)
            connection.pragma("journal_size_limit", 64 * 1024 * 1024)
        return connection


class _SqliteSide:
    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self._statements = SqliteStatements(connection)

    async def fetch(self, name: str, params: Params) -> Sequence[Row]:
        with name_errors(), transaction(self.connection, "BEGIN IMMEDIATE"):
            return await self._statements.fetch(name, params)

    async def close(self) -> None:
        self.connection.close()


def _checkpoint(connection: apsw.Connection) -> None:
    in_journal, moved = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    if in_journal != moved:  # a writer was quicker, and goes on in the same journal
        return
    connection.set_busy_timeout(0)
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        pass  # someone reads or writes; the next checkpoint truncates it
    finally:
        connection.set_busy_timeout(_BUSY_MS)


def _lower(*values: Any) -> str | None:
    return None if values[0] is None else str(values[0]).lower()


async def _do_bare(thread: SqliteThread | None, act: Callable[[apsw.Connection], T]) -> T:
    """Act on a thread's connection, without a transaction."""

    async def work(statements: Statements) -> T:
        assert isinstance(statements, SqliteStatements)
        return act(statements.connection)

    return await _opened(thread).do(work, "bare")


def _opened(thread: SqliteThread | None) -> SqliteThread:
    if thread is None:
        raise StoreClosed
    return thread


def size_of(path: Path) -> int:
    """Return the size of a file; one that is missing has none."""
    return path.stat().st_size if path.exists() else 0


def has_agents(connection: apsw.Connection) -> bool:
    """Return whether a start has ever succeeded: it makes the first agent, and rows of agents are never deleted."""
    return connection.table_exists("main", "agents") and bool(connection.execute("SELECT 1 FROM agents LIMIT 1").get)


@contextlib.contextmanager
def hold(folder: Path) -> Generator[None]:
    """Keep servers out of a data directory."""
    lock = _take_lock(folder)
    try:
        yield
    finally:
        os.close(lock)


def change_key(path: Path, old: bytes, new: bytes) -> None:
    """Encrypt a store that is not open with another key; a store that has this key already is not changed.

    A crash leaves the file with the old key or with the new one.
    """
    if not path.exists():
        return
    with contextlib.suppress(StoreUnreadable):
        SqliteDatabase(path, new).connect().close()
        return
    connection = SqliteDatabase(path, old).connect()
    try:
        with name_errors(path):
            connection.pragma("journal_mode", "delete")
            connection.execute(f"PRAGMA rekey = 'raw:{new.hex()}'")
    finally:
        connection.close()


def _take_lock(folder: Path) -> int:
    """Hold the data directory for this process; the lock goes when the process does, however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(folder / "wakeful.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreUnavailable(
            f"Cannot write in the data directory {str(folder)!r}: {error.strerror}. "
            + remedy_of(error, "Make it writable for this user, or set WAKEFUL_DATA_DIR to another one.")
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        pid = os.read(handle, 32).decode().strip() or "unknown"
        os.close(handle)
        raise StoreInUse(folder, pid) from error
    os.ftruncate(handle, 0)
    os.write(handle, f"{os.getpid()}\n".encode())
    return handle


def _copy_durably(source: Path, target: Path) -> None:
    partial = target.with_suffix(".partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial.touch(mode=0o600)
        with source.open("rb") as original, partial.open("wb") as copy:
            while block := original.read(1024 * 1024):
                copy.write(block)
            copy.flush()
            os.fsync(copy.fileno())
        partial.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise StoreUnavailable(
            f"The store cannot be copied to {str(target)!r}: {error.strerror}. Nothing was changed. "
            "Make room there and try again."
        ) from error
