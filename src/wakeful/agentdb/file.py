"""An agent's file: its cipher, limits that no statement can change, and its pages.

Pages that were committed are read one by one, and written into a file elsewhere.
"""

# pyright: reportUnknownMemberType=false
import errno
import os
import secrets
import struct
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
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


# Pages of a database file: read those that were committed, and write them into a file elsewhere.
#
# The pages stay encrypted, and SQLite is not involved. On a shared store PostgreSQL has every page, and the file here
# is a cache: its worker never checkpoints by itself, so that each commit can be read from the journal (SQLite's WAL).
# Frame headers in it are not encrypted. How far the journal is committed is in the header of the index that SQLite
# shares between processes (`-shm`); that is exact, while frames after it may be of a transaction that was rolled back.


PIECE = 256  # pages; 1 MiB

_WAL_HEADER = 32
_FRAME_HEADER = 24
_FRAME = _FRAME_HEADER + PAGE
_INDEX = struct.Struct("=IIIBBHII8s8s8s")  # WalIndexHdr of SQLite: numbers in the order of this machine
_IS_SET_UP = 12  # place of a flag in it
_KEPT = "-wal-kept-"

Piece = tuple[list[int], list[bytes]]  # numbers of pages, and their bytes


class CacheBroken(Exception):
    """The files of a cache do not fit together: one was deleted or replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The part of a file that is saved elsewhere: everything up to a frame of its journal."""

    inode: int
    salts: bytes = b""  # of the journal; it gets others after each checkpoint
    frame: int = 0


class _Index(NamedTuple):
    frames: int
    page_count: int
    salts: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Pages that were committed since a place, and where they are."""

    page_count: int
    place: Place
    sources: Mapping[int, tuple[Path, int]]  # by page: file and offset

    def pieces(self) -> Iterator[Piece]:
        """Read the pages, a piece at a time."""
        numbers = sorted(self.sources)
        with ExitStack() as opened:
            paths = {path for path, _ in self.sources.values()}
            handles = {path: opened.enter_context(path.open("rb")).fileno() for path in paths}
            for start in range(0, len(numbers), PIECE):
                some = numbers[start : start + PIECE]
                yield some, [self._read(handles, number) for number in some]

    def _read(self, handles: Mapping[Path, int], number: int) -> bytes:
        path, offset = self.sources[number]
        page = os.pread(handles[path], PAGE, offset)
        if len(page) != PAGE:
            raise CacheBroken
        return page


def changes_since(path: Path, place: Place | None) -> Changes | None:
    """Return the pages of a database that were committed since a place; None: none were.

    Without a place, or if the file was replaced since, these are all pages.
    """
    try:
        inode = path.stat().st_ino
        return _changes(path, inode, place if place is not None and place.inode == inode else None)
    except FileNotFoundError as error:
        raise CacheBroken from error


def keep_journal(path: Path, frames: int) -> None:
    """Copy the committed frames of a journal that is about to be emptied, until they are saved elsewhere.

    A worker calls this, so it must not open the index: closing it would end the locks that SQLite has on it.
    """
    if not frames:
        return
    copy = path.with_name(f"{path.name}{_KEPT}{len(_kept(path)):06}")
    left = _WAL_HEADER + frames * _FRAME
    with _journal(path).open("rb") as journal, copy.open("wb", buffering=0) as target:
        while left and (block := journal.read(min(left, 1024 * 1024))):
            write_all(target, block)
            left -= len(block)


def forget_kept(path: Path) -> None:
    """Delete kept journals, whose pages are saved now."""
    for copy in _kept(path):
        copy.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """Delete a cache: the file and everything of SQLite beside it."""
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink(missing_ok=True)


def write(path: Path, pieces: Iterator[Piece]) -> None:
    """Write pages to their places in a file."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        for numbers, pages in pieces:
            for number, page in zip(numbers, pages, strict=True):
                os.pwrite(handle, page, (number - 1) * PAGE)
    finally:
        os.close(handle)


def read(path: Path, numbers: Sequence[int]) -> list[bytes]:
    """Read pages of a file; its journal is not looked at."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return [os.pread(handle, PAGE, (number - 1) * PAGE) for number in numbers]
    finally:
        os.close(handle)


def fold_journal(path: Path, place: Place, page_count: int) -> Place:
    """Move the journal of a cache into its file, and return the new place. SQLite must not have it open."""
    if place.frame:
        sources = _frames(_journal(path), 0, place.frame, place.salts)
        write(path, Changes(page_count=page_count, place=place, sources=sources).pieces())
    return finish(path, page_count)


def finish(path: Path, page_count: int) -> Place:
    """Cut a file that pages were written to, and return its place. SQLite must not have it open."""
    os.truncate(path, page_count * PAGE)
    for end in ("-wal", "-shm"):
        path.with_name(f"{path.name}{end}").unlink(missing_ok=True)
    return Place(inode=path.stat().st_ino)


def _changes(path: Path, inode: int, place: Place | None) -> Changes | None:
    index = _read_index(path)
    journal, kept = _journal(path), _kept(path)
    has_frames = index is not None and index.frames > 0
    sources: dict[int, tuple[Path, int]] = {}
    if place is None:
        sources = {number + 1: (path, number * PAGE) for number in range(path.stat().st_size // PAGE)}
    for copy in kept:
        sources |= _frames(copy, 0, (copy.stat().st_size - _WAL_HEADER) // _FRAME)
    salts, frame = b"", 0
    if index is not None and has_frames:
        salts, frame = index.salts, index.frames
        is_going_on = place is not None and place.salts == salts
        first = place.frame if place is not None and is_going_on else 0
        if frame < first:
            raise CacheBroken
        sources |= _frames(journal, first, frame, salts)
    here = Place(inode=inode, salts=salts, frame=frame)
    if not sources:
        return None
    page_count = index.page_count if index is not None and has_frames else path.stat().st_size // PAGE
    return Changes(
        page_count=page_count,
        place=here,
        sources={number: source for number, source in sources.items() if number <= page_count},
    )


def _frames(journal: Path, first: int, end: int, salts: bytes | None = None) -> dict[int, tuple[Path, int]]:
    """Return where the pages of some frames are; a later frame of a page replaces an earlier one."""
    found: dict[int, tuple[Path, int]] = {}
    with journal.open("rb") as file:
        handle = file.fileno()
        if salts is not None and os.pread(handle, 8, 16) != salts:
            raise CacheBroken
        for number in range(first, end):
            offset = _WAL_HEADER + number * _FRAME
            header = os.pread(handle, 4, offset)
            if len(header) != 4:
                raise CacheBroken
            found[int.from_bytes(header)] = (journal, offset + _FRAME_HEADER)
    return found


def _read_index(path: Path) -> _Index | None:
    """Read the header of the shared index; None: SQLite has not opened the file, or has closed it for good."""
    try:
        with path.with_name(f"{path.name}-shm").open("rb") as file:
            first, second = file.read(_INDEX.size), file.read(_INDEX.size)
    except FileNotFoundError:
        first = second = b""
    if len(second) == _INDEX.size and first[_IS_SET_UP]:
        if first != second:
            raise CacheBroken
        *_, frames, page_count, _, salts, _ = _INDEX.unpack(first)
        return _Index(frames, page_count, salts)
    journal = _journal(path)
    if journal.exists() and journal.stat().st_size:
        raise CacheBroken
    return None


def _journal(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _kept(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}{_KEPT}*"))
