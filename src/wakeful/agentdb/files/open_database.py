"""A request, and the database it is about as a worker keeps it open."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from wakeful.agentdb.database import SYSTEM_SCHEMA, GuardedConnection, Reader, Writer
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.files.files import BUSY_MS, EMPTY
from wakeful.agentdb.history.changelog import Who

MOST_OPEN = 8  # databases that a worker has open at a time
JOURNAL_SECONDS = 30.0  # after a write, until it is moved from the journal into the file


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the server asks of a worker."""

    op: str
    path: str  # of the file; empty if the agent has none yet
    key: str  # hexadecimal
    seconds: float  # after which it is stopped
    room_seconds: float = 30.0  # more time for a write that finds the file full, to make room and try again
    quota: int
    at: str
    actor: str = "system"
    run_id: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def who(self) -> Who:
        return Who(at=self.at, actor=self.actor, run_id=self.run_id)


class Opened:
    """One database, opened when something is first asked of it."""

    def __init__(self, path: str, key: bytes) -> None:
        self.path = path
        self.key = key
        self._reader: Reader | None = None
        self._writer: Writer | None = None
        self._inode: int | None = None

    def begin(self) -> None:
        self.let_go()
        for side in self.sides:
            side.guard.reason = None

    @property
    def reader(self) -> Reader:
        if self._reader is None:
            if self.path and not Path(self.path).exists():
                # A file made here, for a reader that waited while the database was erased, would have no key beside it.
                raise Refusal("unavailable", "The database was erased before it could be read. Ask again.")
            self._reader = Reader(self._connect(may_make=False))
            if self.path == EMPTY:
                self._reader.connection.raw.execute(SYSTEM_SCHEMA)
            elif not self._reader.connection.raw.table_exists("main", "_changelog"):
                _ = self.writer  # a crash came before the host's tables were made
        return self._reader

    @property
    def writer(self) -> Writer:
        if self._writer is None:
            writer = Writer(self._connect(may_make=True))
            writer.settle()
            self._writer = writer
        return self._writer

    def let_go(self) -> None:
        """Free what the answer was made of, now that nobody waits."""
        if self._reader is not None:
            self._reader.taken.clear()
        if self._writer is not None:
            self._writer.capture.changes = []

    def empty_journal(self) -> None:
        """Move what stands in the journal into the file. What another process is in the way of is left to later."""
        if self._writer is None:
            return
        raw = self._writer.raw
        raw.set_busy_timeout(0)
        try:
            raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error:  # it is complete as it is; a full disk or a broken one shows at the next write
            pass
        finally:
            raw.set_busy_timeout(BUSY_MS)

    def is_same_file(self) -> bool:
        """Tell whether the file is still the one that was opened here."""
        try:
            return self._inode in (None, os.stat(self.path).st_ino)  # noqa: PTH116  (asked at each request)
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
        if may_make and self.path and not Path(self.path).exists():
            # For its owner alone, and so are the log and the index that SQLite makes after it.
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600))
        try:
            connection = GuardedConnection(self.path, self.key, may_make=may_make)
        except (apsw.NotADBError, apsw.CorruptError) as error:
            raise Refusal("unreadable", "The database cannot be read with its key.") from error
        if self.path:
            self._inode = Path(self.path).stat().st_ino
        return connection
