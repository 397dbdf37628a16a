"""A request to a worker, and a database as the worker keeps it open."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from wakeful.agentdb.changelog import Who
from wakeful.agentdb.connection import SYSTEM_SCHEMA, GuardedConnection, Reader, Writer
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.file import BUSY_MS, EMPTY
from wakeful.agentdb.operation import Door

MAX_OPEN = 8  # databases that a worker has open at a time
JOURNAL_SECONDS = 30.0  # after a write, until it is moved from the journal into the file


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A call of an operation, as the server sends it to a worker."""

    op: str
    path: str  # of the file; empty if the agent has none yet
    key: str  # hexadecimal
    seconds: float  # time limit
    room_seconds: float = 30.0  # more time for a write to a full file, to make room and retry
    quota: int
    at: str
    zone: str = "UTC"  # of times in errors
    actor: str = "system"
    run_id: str | None = None
    door: Door = "tool"
    is_cache: bool = False  # the file is a copy of what PostgreSQL has
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])


class OpenDatabase:
    """One database in a worker; its connections are opened when they are first needed."""

    def __init__(self, path: str, key: bytes, *, is_cache: bool = False) -> None:
        self.path = Path(path)
        self.is_cache = is_cache
        self.is_new = path == EMPTY  # there is no file, so an empty database in memory is read
        self.key = key
        self.who = Who(at="", actor="system")  # of the current request, as is the quota
        self.quota = 0
        self._reader: Reader | None = None
        self._writer: Writer | None = None
        self._inode: int | None = None

    def begin(self, request: Request) -> None:
        """Prepare for a request."""
        self.free_memory()
        self.who = Who(at=request.at, actor=request.actor, run_id=request.run_id)
        self.quota = request.quota
        for side in self.sides:
            side.guard.reason = None

    @property
    def reader(self) -> Reader:
        if self._reader is None:
            if not self.is_new and not self.path.exists():
                # A file created here, for a reader that waited while the database was erased, would have no key.
                raise Refusal("unavailable", "The database was erased before it could be read. Try again.")
            self._reader = Reader(self._connect(may_make=False))
            if self.is_new:
                self._reader.connection.raw.execute(SYSTEM_SCHEMA)
            elif not self._reader.connection.raw.table_exists("main", "_changelog"):
                _ = self.writer  # a crash came before the host's tables were created
        return self._reader

    @property
    def writer(self) -> Writer:
        if self._writer is None:
            writer = Writer(self._connect(may_make=True))
            writer.create_system_tables()
            self._writer = writer
        return self._writer

    def free_memory(self) -> None:
        """Free the rows of the last answer, after it was sent."""
        if self._reader is not None:
            self._reader.sent_rows.clear()
        if self._writer is not None:
            self._writer.capture.changes = []

    def empty_journal(self) -> None:
        """Move the journal into the file; if another process is in the way, leave it for later."""
        if self._writer is None or self.is_cache:  # the server says when that of a cache may be emptied
            return
        raw = self._writer.raw
        raw.set_busy_timeout(0)
        try:
            raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error:  # nothing is lost: the journal stays, and the next write reports a full or broken disk
            pass
        finally:
            raw.set_busy_timeout(BUSY_MS)

    def is_same_file(self) -> bool:
        """Return whether the file is still the one that was opened."""
        try:
            return self._inode in (None, os.stat(self.path).st_ino)  # noqa: PTH116  (at each request; pathlib is slower)
        except FileNotFoundError:
            return False

    @property
    def sides(self) -> list[GuardedConnection]:
        return [side.connection for side in (self._reader, self._writer) if side is not None]

    def close(self) -> None:
        for side in self.sides:
            side.close()
        self._reader = self._writer = None

    def _connect(self, *, may_make: bool) -> GuardedConnection:
        if may_make and not self.is_new and not self.path.exists():
            # Readable by its owner alone; SQLite gives its journal and shared memory the same mode.
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600))
        try:
            path = EMPTY if self.is_new else str(self.path)
            connection = GuardedConnection(path, self.key, may_make=may_make, is_cache=self.is_cache)
        except (apsw.NotADBError, apsw.CorruptError) as error:
            raise Refusal("unreadable", "The database cannot be read with its key.") from error
        if not self.is_new:
            self._inode = self.path.stat().st_ino
        return connection
