"""Connections to an agent's database in a worker, a reader and a writer; and a database as the worker keeps it open."""

# pyright: reportUnknownMemberType=false
import os
import secrets
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from wakeful.agentdb import changelog, deadline, file
from wakeful.agentdb.changelog import Capture, Change, Changelog, Who
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.file import BUSY_MS, EMPTY, Raw
from wakeful.agentdb.guard import Profile, SqlGuard, is_reserved
from wakeful.agentdb.operation import Door, name_of

SYSTEM_COLUMNS = ("_created_at", "_updated_at", "_deleted_at")
SYSTEM_SCHEMA = (
    changelog.SCHEMA
    + """
CREATE TABLE _tables (name TEXT PRIMARY KEY, purpose TEXT NOT NULL) STRICT;
CREATE TABLE _views (
    name TEXT PRIMARY KEY,
    sql TEXT NOT NULL,
    description TEXT NOT NULL,
    parameters TEXT NOT NULL,
    render TEXT NOT NULL,
    is_pinned INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE TABLE _meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
"""
)

ROW_ID_NAMES = ("rowid", "oid", "_rowid_")  # SQLite's names for the row id; a column of that name hides it

_MAX_PREPARED = 50
_STEPS_BETWEEN_CHECKS = 20_000  # instructions of SQLite's virtual machine between two checks of the deadline


def quoted(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def row_id_of(columns: Iterable[str]) -> str:
    """Return a name of the row id that no column of a table hides."""
    taken = {name.lower() for name in columns}
    if free := [name for name in ROW_ID_NAMES if name not in taken]:
        return free[0]
    raise Refusal("refused", f"Columns named {', '.join(ROW_ID_NAMES)} leave no name for the row id. Rename one.")


class Statement(NamedTuple):
    """One prepared statement, not yet run."""

    text: str
    rest: str
    is_readonly: bool
    columns: tuple[str, ...]
    parameters: tuple[str | None, ...]


class GuardedConnection:
    """A connection with an authorizer and a deadline."""

    def __init__(self, path: str, key: bytes, *, may_make: bool = False, is_cache: bool = False) -> None:
        self.raw: Raw = file.connect(path, key, may_make=may_make, is_cache=is_cache)
        self._kept_path = Path(path) if is_cache else None  # of a file whose journal is kept when it is emptied
        self.guard = SqlGuard()
        self.raw.authorizer = self.guard
        self._prepared: dict[str, Statement] = {}  # queries seen before; SQLite still asks the guard about each
        self.raw.set_progress_handler(deadline.is_past, _STEPS_BETWEEN_CHECKS)

    @contextmanager
    def under(self, profile: Profile) -> Generator[None]:
        """Restrict statements inside to what a profile allows."""
        self.guard.tables = frozenset(self.tables())
        self.guard.profile = profile
        self.guard.begin_statement()
        before = self.raw.limit(apsw.SQLITE_LIMIT_LENGTH, file.MAX_VALUE)
        try:
            yield
        finally:
            self.guard.profile = "host"
            self.raw.limit(apsw.SQLITE_LIMIT_LENGTH, before)

    @property
    def _caching(self) -> dict[str, Any]:
        """Return apsw's cache options for a model's statement, which must not find one that was checked as the host's.

        The cache looks statements up by text and flags, and no host statement has this flag. What a query may read
        changes only with the temporary views, and when those change SQLite calls the authorizer again.
        """
        if self.guard.profile == "query":
            return {"can_cache": True, "prepare_flags": apsw.SQLITE_PREPARE_PERSISTENT}
        return {"can_cache": False}

    def run(self, statement: Statement, bindings: Any = None) -> Any:
        """Run a prepared statement."""
        return self.raw.execute(statement.text, bindings, **self._caching)

    def prepare(self, sql: str) -> Statement | None:
        """Prepare the first statement of a text without running it; None if there are only comments."""
        noted: list[Statement] = []

        def note(cursor: apsw.Cursor, text: str, _bindings: Any) -> bool:
            if cursor.is_explain:
                raise Refusal("refused", "EXPLAIN is not allowed in an agent's database.")
            if cursor.has_vdbe:
                columns = tuple(str(column[0]) for column in cursor.get_description())
                noted.append(Statement(text, sql[len(text) :], cursor.is_readonly, columns, cursor.bindings_names))
            return False

        if "\x00" in sql:
            raise Refusal("invalid", "The statement must not have a NUL character.", field="sql")
        self.guard.begin_statement()
        cursor = self.raw.cursor()
        cursor.exec_trace = note
        try:
            no_values: Any = getattr(apsw, "_null_bindings")  # noqa: B009  (apsw's types lack it)
            cursor.execute(sql, no_values, **self._caching)
        except apsw.ExecTraceAbort:
            pass
        finally:
            cursor.close()
        return noted[0] if noted else None

    def prepare_only(self, sql: str) -> Statement:
        """Prepare the one statement that a text may have."""
        statement = self._prepared.get(sql) if self.guard.profile == "query" else None
        if statement is not None:
            return statement
        statement = self.prepare(sql)
        if statement is None:
            raise Refusal("invalid", "The text has no statement.", field="sql")
        if statement.rest.strip() and self.prepare(statement.rest) is not None:
            raise Refusal("refused", "Only one statement at a time. Call once for each.", field="sql")
        if self.guard.profile == "query" and len(self._prepared) < _MAX_PREPARED:
            self._prepared[sql] = statement
        return statement

    def forget_statements(self) -> None:
        """Drop prepared statements, because the views they name have changed."""
        self._prepared.clear()

    def empty_journal(self) -> None:
        """Move the journal into the file, because only the file itself is copied."""
        if self._kept_path is not None:
            frames, _ = self.raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            file.keep_journal(self._kept_path, frames)
        self.raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def tables(self) -> list[str]:
        """Return the names of the agent's own tables."""
        found = self.raw.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table' ORDER BY name")
        return [name for (name,) in found if not is_reserved(name)]

    def columns(self, table: str) -> list[str]:
        return [name for (name,) in self.raw.execute("SELECT name FROM pragma_table_info(?, 'main')", (table,))]

    def close(self) -> None:
        self.raw.close()


class Reader:
    """Reads through temporary views that hide soft-deleted rows.

    Each table has a view of its own name over a view with a random name, and the guard allows reading the table only
    from the latter: a statement that names `main.t`, or calls a subquery of its own `t`, is refused.
    """

    def __init__(self, connection: GuardedConnection) -> None:
        self.connection = connection
        self.sent_rows: list[Any] = []  # rows of the current answer; freed after it was sent
        self._views_for: tuple[int, bool] | None = None

    @contextmanager
    def reading(self, *, include_deleted: bool = False) -> Generator[GuardedConnection]:
        """Begin a read transaction in which a model's statement may run."""
        try:
            with file.transaction(self.connection.raw, "DEFERRED"):
                self._make_views(include_deleted=include_deleted)
                with self.connection.under("query"):
                    yield self.connection
        except BaseException:
            self._views_for = None  # an error text may contain a random name, so the next statement gets new ones
            raise

    @contextmanager
    def looking(self) -> Generator[GuardedConnection]:
        """Begin a read transaction for the host's own statements."""
        raw = self.connection.raw
        raw.execute("BEGIN")
        try:
            yield self.connection
        finally:
            raw.execute("ROLLBACK" if self._views_for is None else "COMMIT")

    def _make_views(self, *, include_deleted: bool) -> None:
        connection = self.connection
        version = connection.raw.execute("PRAGMA schema_version").get
        if self._views_for == (version, include_deleted):
            return
        connection.forget_statements()
        for (name,) in connection.raw.execute("SELECT name FROM sqlite_temp_schema WHERE type = 'view'").fetchall():
            connection.raw.execute(f"DROP VIEW temp.{quoted(name)}")
        tables = [] if include_deleted else connection.tables()
        doors = [f"_{secrets.token_hex(16)}" for _ in tables]
        for table, door in zip(tables, doors, strict=True):
            live = f"SELECT * FROM main.{quoted(table)} WHERE _deleted_at IS NULL"
            connection.raw.execute(f"CREATE TEMP VIEW {door} AS {live}")
            connection.raw.execute(f"CREATE TEMP VIEW {quoted(table)} AS SELECT * FROM temp.{door}")
        connection.guard.hides = not include_deleted
        connection.guard.doors = frozenset(doors)
        connection.guard.views = frozenset(doors) | frozenset(tables)
        self._views_for = (version, include_deleted)


class Writer:
    """Writes, one transaction per call, with its changelog entries."""

    def __init__(self, connection: GuardedConnection) -> None:
        self.connection = connection
        self.raw: Raw = connection.raw
        self.capture = Capture(self.raw)
        self.changelog = Changelog(self.raw)
        self._columns: dict[str, list[str]] = {}
        self._max_pages = 0
        self.who = Who(at="", actor="system")  # of the current transaction, as is the quota
        self.quota = 0
        self.usage = file.FileUsage(0, 0)  # after the last transaction
        self.last_change, self.last_hash = 0, b""

    def create_system_tables(self) -> None:
        """Create the host's tables, in a file that has none yet."""
        with file.transaction(self.raw):
            if not self.raw.table_exists("main", "_changelog"):
                self.raw.execute(SYSTEM_SCHEMA)

    @contextmanager
    def writing(
        self,
        who: Who,
        quota_bytes: int,
        *,
        op: str | None = None,
        detail: str | None = None,
        reserve: float = file.FOR_DELETING,
        may_delete: bool = False,
        is_bounded: bool = False,
        max_value: int = file.MAX_VALUE,
    ) -> Generator["Writer"]:
        """Begin a write transaction; at its end, write the changelog and commit."""
        self.who, self.quota = who, quota_bytes
        self._limit_pages(reserve)
        self._columns.clear()
        with file.transaction(self.raw):
            used_before = file.used_bytes(self.raw)
            self.capture.begin(may_delete=may_delete, is_bounded=is_bounded)
            self.raw.limit(apsw.SQLITE_LIMIT_LENGTH, max_value)
            try:
                yield self
            finally:
                self.capture.turn(on=False)
                self.raw.limit(apsw.SQLITE_LIMIT_LENGTH, file.MAX_HOST_VALUE)
            self._log(op, detail)
            file.check_quota(self.raw, quota_bytes, reserve, used_before)
            self.usage = file.measure_usage(self.raw, quota_bytes)

    @contextmanager
    def unnoted(self) -> Generator[None]:
        """Keep the host's timestamps out of the changelog; the images of the stamped rows include them."""
        self.capture.turn(on=False)
        try:
            yield
        finally:
            self.capture.turn(on=True)

    def columns(self, table: str) -> list[str]:
        """Return the columns of a table in this transaction."""
        if table not in self._columns:
            self._columns[table] = self.connection.columns(table)
        return self._columns[table]

    def forget_columns(self) -> None:
        """Drop the cached columns, because the schema has changed in this transaction."""
        self._columns.clear()

    def need_table(self, name: str) -> list[str]:
        """Return the columns of an agent's table."""
        if not name or is_reserved(name) or not self.columns(name):
            raise no_such_table(name, self.connection.tables())
        return self.columns(name)

    def flush(self, op: str) -> None:
        """Log the captured changes now, before the columns of their tables change."""
        before = self.raw.limit(apsw.SQLITE_LIMIT_LENGTH, file.MAX_HOST_VALUE)
        self._log(op, None)
        self.raw.limit(apsw.SQLITE_LIMIT_LENGTH, before)
        self.capture.changes = []

    def stamp(self, changes: Iterable[Change]) -> list[Change]:
        """Set the host's timestamps in rows that a model's statement wrote, over whatever it set itself."""
        stamped: list[Change] = []
        for change in deadline.checked(changes):
            assert change.new is not None
            names = self.columns(change.table)
            created, deleted = names.index("_created_at"), names.index("_deleted_at")
            new = list(change.new)
            new[names.index("_updated_at")] = self.who.at
            new[created] = self.who.at if change.old is None else change.old[created]
            new[deleted] = None if change.old is None else change.old[deleted]
            stamped.append(change._replace(new=tuple(new)))
            self.raw.execute(
                f"UPDATE main.{quoted(change.table)} SET _created_at = ?, _updated_at = ?, _deleted_at = ?"
                f" WHERE {row_id_of(names)} = ?",
                (new[created], self.who.at, new[deleted], change.moved_to),
            )
        return stamped

    def delete_alone(self, table: str, row_id: int) -> bool:
        """Delete a row for good, unless another row refers to it.

        ON DELETE CASCADE and SET NULL would change that other row, which may be live, and a deferred foreign key would
        fail the commit.
        """
        noted = len(self.capture.changes)
        self.raw.execute("SAVEPOINT alone")
        try:
            self.raw.execute(f"DELETE FROM main.{quoted(table)} WHERE {row_id_of(self.columns(table))} = ?", (row_id,))
            is_alone = (
                len(self.capture.changes) == noted + 1 and not self.raw.status(apsw.SQLITE_DBSTATUS_DEFERRED_FKS)[0]
            )
        except apsw.ConstraintError:
            is_alone = False
        if not is_alone:
            self.raw.execute("ROLLBACK TO alone")
            del self.capture.changes[noted:]
        self.raw.execute("RELEASE alone")
        return is_alone

    def _log(self, op: str | None, detail: str | None) -> None:
        changes = self.capture.changes
        columns = {table: self.columns(table) for table in {change.table for change in changes}}
        entries = changelog.entries_of(changes, columns, op)
        # The request itself is logged once, before the rows it changed.
        noted = [] if detail is None else [(op, None, None, None, None, detail)]
        self.last_change, self.last_hash = self.changelog.add(self.who, chain(noted, entries))

    def _limit_pages(self, reserve: float) -> None:
        pages = file.max_pages(self.quota, reserve)
        if pages != self._max_pages:
            self.raw.execute(f"PRAGMA max_page_count = {pages}")
            self._max_pages = pages


def no_such_table(name: str, tables: Sequence[str]) -> Refusal:
    none = f"There is none yet; {name_of('create_table')} creates one."
    existing = f"There are: {', '.join(tables)}." if tables else none
    return Refusal("not_found", f"There is no table {name!r}. {existing}", field="table")


# A request to a worker, and a database as the worker keeps it open.


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
