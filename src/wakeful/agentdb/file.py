"""Open an agent's file: its cipher, and limits that no statement can change."""

# pyright: reportUnknownMemberType=false
import errno
import os
import secrets
from collections.abc import Generator
from contextlib import closing, contextmanager
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import apsw

from wakeful.agentdb.errors import Refusal
from wakeful.core.files import sync_folder

# apsw's types name collections.abc.Buffer, which Python 3.11 does not have, so its methods count as partly unknown.
PAGE = 4096
PLAIN_HEADER = b"SQLite format 3\x00"
Raw = Any
"""An apsw.Connection. Its own types call half of what SQLite returns unknown, so rows are typed where they are used."""

EMPTY = ""  # path of a database that does not exist yet: an empty one in memory is read instead

BUSY_MS = 5_000
CACHE_KIB = 2_000
_PROBE = 64 * 1024  # bytes; too many for a disk on which SQLite could not write a page

MAX_VALUE = 1_000_000  # bytes of one value, and of one row
MAX_HOST_VALUE = 16_000_000  # a changelog entry has a row twice, as JSON

_LIMITS = {
    apsw.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    apsw.SQLITE_LIMIT_COLUMN: 200,
    apsw.SQLITE_LIMIT_EXPR_DEPTH: 100,
    apsw.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    apsw.SQLITE_LIMIT_VDBE_OP: 100_000,
    apsw.SQLITE_LIMIT_FUNCTION_ARG: 100,
    apsw.SQLITE_LIMIT_ATTACHED: 0,
    apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 500,
    apsw.SQLITE_LIMIT_VARIABLE_NUMBER: 1_000,
    apsw.SQLITE_LIMIT_TRIGGER_DEPTH: 10,
    apsw.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_SWITCHES = {
    apsw.SQLITE_DBCONFIG_DEFENSIVE: 1,
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_VIEW: 0,  # those in the file; temporary views still work
    apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_FKEY: 1,
    apsw.SQLITE_DBCONFIG_DQS_DML: 0,  # a misspelled "column" is an error, not a text
    apsw.SQLITE_DBCONFIG_DQS_DDL: 0,
}


def connect(path: str, key: bytes, *, may_make: bool = False, is_cache: bool = False) -> Raw:
    """Open a file with its key. Raises NotADBError if they do not fit; then nothing was changed."""
    if path != EMPTY:
        _refuse_cut(Path(path))
    # One thread uses the connection. A lock for each row and value would take a quarter of a query's time.
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOMUTEX
    if path == EMPTY:
        connection = apsw.Connection(":memory:", flags=flags)
    else:
        if is_plain(Path(path)):
            change_key(Path(path), None, key)
        connection = apsw.Connection(path, flags=flags | (apsw.SQLITE_OPEN_CREATE if may_make else 0))
        try:
            if is_cache:
                _leave_journal(connection)
            _unlock(connection, key)
            if is_cache:
                connection.pragma("synchronous", "OFF")  # after a crash it is brought again
        except BaseException:
            connection.close()
            raise
    _restrict(connection)
    return connection


@contextmanager
def transaction(connection: Raw, kind: str = "IMMEDIATE") -> Generator[None]:
    """Commit after the block, or roll back if it fails."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full file makes SQLite roll back by itself; a second rollback would hide the real error.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def open_copy(path: Path, key: bytes) -> Raw:
    """Open a snapshot read-only, without a journal."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOMUTEX | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(f"file:{quote(str(path))}?immutable=1", flags=flags)
    try:
        _set_key(connection, key)
        _restrict(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def opens(path: Path, key: bytes) -> bool:
    """Return whether a key opens a file."""
    if is_plain(path):
        return False
    try:
        connect(str(path), key).close()
    except apsw.NotADBError:
        return False
    return True


def is_plain(path: Path) -> bool:
    """Return whether a file has the header of an unencrypted SQLite database."""
    try:
        with path.open("rb") as file:
            return file.read(len(PLAIN_HEADER)) == PLAIN_HEADER
    except FileNotFoundError:
        return False


def is_disk_full(folder: Path) -> bool:
    """Return whether writing a small file fails. Free space does not say it: it ignores disk quotas and reserves."""
    probe = folder / f".room-{secrets.token_hex(4)}"
    try:
        handle = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(handle, bytes(_PROBE))
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    finally:
        probe.unlink(missing_ok=True)
    return False


def is_cut(path: Path) -> bool:
    """Return whether a file is missing or empty while its journal, which SQLite would delete, is not."""
    return not size_of(path) and size_of(path.with_name(f"{path.name}-wal")) > 0


def _refuse_cut(path: Path) -> None:
    if is_cut(path):
        raise apsw.NotADBError("the file is empty, but its journal is not")


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _unlock(connection: Raw, key: bytes) -> None:
    connection.set_busy_timeout(BUSY_MS)
    _set_key(connection, key)
    connection.pragma("journal_mode", "wal")  # reads the first page, so a wrong key fails here
    connection.pragma("synchronous", "FULL")
    connection.pragma("cache_size", -CACHE_KIB)
    connection.pragma("journal_size_limit", 16 * 1024 * 1024)


def _leave_journal(connection: Raw) -> None:
    """Keep SQLite from emptying the journal of a cache: the pages in it may not be saved elsewhere yet."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.wal_autocheckpoint(0)


def _set_key(connection: Raw, key: bytes | None) -> None:
    connection.pragma("cipher", "sqlcipher")
    connection.pragma("legacy", 4)
    if key is not None:
        connection.execute(f"PRAGMA key = 'raw:{key.hex()}'")


def change_key(path: Path, old: bytes | None, new: bytes) -> None:
    """Encrypt a file with another key; without an old one it is plain. A crash leaves the old file or the new one.

    PRAGMA rekey overwrites a file in place, with a new salt in its first page. If the process is killed meanwhile,
    neither key reads the file or its rollback journal. So a copy is encrypted, and then replaces the file.
    """
    _refuse_cut(path)
    draft = path.with_name(f"{path.name}.rekey")
    with closing(_open_keyed(path, old)) as connection:
        if connection.pragma("journal_mode", "delete") != "delete":
            raise _in_use()
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except apsw.BusyError:
            raise _in_use() from None
        # To close any descriptor of the file would end this process's locks on it, so this one stays open to the end.
        with path.open("r+b", buffering=0) as original:
            try:
                _copy(original, draft)
                with closing(_open_keyed(draft, old)) as copy:
                    copy.execute(f"PRAGMA rekey = 'raw:{new.hex()}'")
                draft.replace(path)
            finally:
                _remove(draft)
            sync_folder(path.parent)
            _spoil(original)


def _open_keyed(path: Path, key: bytes | None) -> Raw:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOMUTEX)
    try:
        connection.set_busy_timeout(BUSY_MS)
        _set_key(connection, key)
        connection.pragma("journal_mode")  # reads the first page, so a wrong key fails here
    except BaseException:
        connection.close()
        raise
    return connection


def _copy(original: FileIO, draft: Path) -> None:
    _remove(draft)  # of an attempt that was cut off
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", buffering=0) as target:
        while block := original.read(1024 * 1024):
            write_all(target, block)
        os.fsync(target.fileno())


def _remove(draft: Path) -> None:
    for path in (draft, draft.with_name(f"{draft.name}-journal")):
        path.unlink(missing_ok=True)


def _spoil(replaced: FileIO) -> None:
    """Overwrite the first page of a file that was replaced: a process that waits to write to it must fail."""
    replaced.seek(0)
    write_all(replaced, bytes(PAGE))


def write_all(target: FileIO, block: bytes) -> None:
    """Write unbuffered: on a full disk a buffer would raise again when it is closed."""
    rest = memoryview(block)
    while rest:
        rest = rest[target.write(rest) :]


def _in_use() -> Refusal:
    return Refusal("unavailable", "The database is in use elsewhere, so its key was not changed. Try again.")


def _restrict(connection: Raw) -> None:
    for limit, value in _LIMITS.items():
        connection.limit(limit, value)
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, MAX_HOST_VALUE)
    for switch, value in _SWITCHES.items():
        connection.config(switch, value)
    connection.pragma("temp_store", "memory")


# The quota of an agent's file.


# Shares of the quota that a write must leave: deletes work in a full file, and so do the host's purge entries.
FOR_DELETING = 0.05
FOR_HOST = 0.02
WARN_AT = 0.80
RESET_WARNING_AT = 0.60  # lower: a full file that the host makes room in would cross the warning again and again
MIN_PAGES = 32  # for the host's own tables

_WARNED = "storage_warned"


class NoRoom(Exception):
    """A write would leave too little space, and SQLite did not refuse it."""


class FileUsage(NamedTuple):
    """Use of the quota; `is_crossing` is true for the write that crosses the warning."""

    used: int
    quota: int
    is_crossing: bool = False


def max_pages(quota: int, reserve: float) -> int:
    """Return how many pages the file may have after a write."""
    return max(MIN_PAGES, int(quota // PAGE * (1 - reserve)))


def used_bytes(connection: Raw) -> int:
    pages = connection.pragma("page_count") - connection.pragma("freelist_count")
    return pages * PAGE


def check_quota(connection: Raw, quota: int, reserve: float, before: int) -> None:
    """Refuse a write that used some of the reserve.

    SQLite limits the size of the file, so once a delete has grown the file into the reserve, any write could use its
    free pages.
    """
    used = used_bytes(connection)
    if used > before and used > max_pages(quota, reserve) * PAGE:
        raise NoRoom


def measure_usage(connection: Raw, quota: int) -> FileUsage:
    """Measure usage inside the transaction that wrote, and store whether the warning was given."""
    used = used_bytes(connection)
    is_over = used >= quota * WARN_AT
    was_over = bool(connection.execute("SELECT 1 FROM _meta WHERE key = ?", (_WARNED,)).fetchone())
    if is_over and not was_over:
        connection.execute("INSERT INTO _meta VALUES (?, 'yes')", (_WARNED,))
    elif was_over and used < quota * RESET_WARNING_AT:
        connection.execute("DELETE FROM _meta WHERE key = ?", (_WARNED,))
    return FileUsage(used, quota, is_over and not was_over)
