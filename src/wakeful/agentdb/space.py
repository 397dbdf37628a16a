"""Reclaim space in a full file, the smallest loss first.

1. Purge soft-deleted rows ("tombstones"), and drop images of rows in the changelog, that are older than 30 days.
2. Rewrite tables with much empty space in their pages; nothing is lost.
3. Purge younger tombstones, oldest first, if a snapshot of the file has them.
4. Drop younger images in the changelog, oldest first: those changes can no longer be undone.
5. Delete changelog entries without images, oldest first, while the changelog has more than its share of the file.

Each step adds an entry of the actor `system`.
"""

import heapq
from collections import defaultdict
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import orjson

from wakeful.agentdb import deadline, file, history
from wakeful.agentdb.changelog import Who
from wakeful.agentdb.connection import GuardedConnection, OpenDatabase, Writer, quoted, row_id_of
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.file import Raw
from wakeful.agentdb.operation import operation
from wakeful.agentdb.schema import free_names, log_schema
from wakeful.core.errors import DiskFull
from wakeful.core.resources import find_shortage

KEEP = timedelta(days=30)
_MAX_AT_ONCE = 50_000
_CHANGELOG_SHARE = 5  # a fifth of the quota is reserved for the changelog
_MIN_CHANGELOG_SHARE = 20  # and 5 % when rows are deleted, which must work in a full file
_ENTRY = 120  # bytes of an entry without images, at least
_COVER = "reclaim_snapshot"
_NO_ROOM_FOR_COPY = (
    "The server's disk is full, so there is no room for the copy of the database that is made before deleted rows are "
    "purged. Nothing was written. Try again when its operator has freed space."
)


@operation("purge", "upkeep", is_long=True)
def purge(db: OpenDatabase) -> dict[str, int]:
    """Purge tombstones, images and snapshots that are older than 30 days now, instead of when space is short."""
    history.delete_expired(db.path, db.who.at)
    return Reclaim(db.writer, db.path, db.who.at, db.quota).purge_expired()


class Tombstone(NamedTuple):
    """A row that was soft-deleted."""

    deleted_at: str
    table: str
    row_id: int
    size: int  # bytes of its values


class Reclaim:
    """Reclaims space in one file, within one request."""

    SHARE = 10  # a tenth of the quota at a time, if possible, so that not every write has to reclaim
    MIN_SHARE = 25  # less than 4 % is not worth the time: the file is full

    def __init__(self, writer: Writer, path: Path, at: str, quota_bytes: int, *, spares_changelog: bool = True) -> None:
        self._writer = writer
        self._path = path
        self._who = Who(at=at, actor="system")
        self._quota = quota_bytes
        self._changelog_bytes = quota_bytes // (_CHANGELOG_SHARE if spares_changelog else _MIN_CHANGELOG_SHARE)
        self._old = (datetime.fromisoformat(at) - KEEP).isoformat()
        self.purged = self.thinned = 0
        self.obstacle: str | None = None  # why young tombstones were not purged

    def purge_expired(self) -> dict[str, int]:
        """Purge tombstones and images that are older than 30 days, and nothing else."""
        self._purge_old()
        return {"purged": self.purged, "thinned": self.thinned}

    def make_room(self, need: int) -> int:
        """Free the needed bytes if possible; return how many were freed."""
        before = file.used_bytes(self._writer.raw)
        freed = 0
        for step in (
            self._purge_old,
            self._repack,
            self._purge_young,
            self._repack,
            self._thin_young,
            self._repack,
            self._delete_entries,
        ):
            deadline.check()
            with suppress(apsw.FullError):  # no space for its changelog entry: the next step frees some
                step(need - freed)
            freed = before - file.used_bytes(self._writer.raw)
            if freed >= need:
                break
        return max(freed, 0)

    def _purge_old(self, _need: int = 0) -> None:
        with self._writing():
            self._purge(_oldest(self._writer, self._old))
            self._thin(
                "SELECT max(id) FROM _changelog WHERE at <= ? AND (before IS NOT NULL OR after IS NOT NULL)", self._old
            )

    def _repack(self, _need: int) -> None:
        repack(self._writer.connection)

    def _purge_young(self, need: int) -> None:
        """Purge tombstones that a snapshot has; if these are too few, take a snapshot now."""
        freed = 0
        covered = self._covered_until()
        if covered is not None:
            with self._writing():
                freed = self._purge(_oldest(self._writer, covered, need))
        left = _oldest(self._writer, self._who.at, need - freed)
        # At most one copy an hour is kept, so none is spent on a few rows that would free next to nothing.
        if freed >= need or sum(each.size for each in left) < self._quota // self.MIN_SHARE:
            return
        self._writer.connection.empty_journal()
        with self._writing():
            if self._take_snapshot():
                self._purge(_oldest(self._writer, self._who.at, need - freed))

    def _take_snapshot(self) -> bool:
        """Copy the file. A copy that cannot be kept for 30 days lasts until the next one is made."""
        try:
            copy = history.take_snapshot(self._path, self._who.at)
        except Refusal as refusal:
            self.obstacle = refusal.message
            return False
        except OSError as error:
            if isinstance(find_shortage(error), DiskFull):
                raise Refusal("disk_full", _NO_ROOM_FOR_COPY) from error
            self.obstacle = f"No snapshot of the database could be written: {error.strerror}."
            return False
        if history.room_at(self._path, copy.stat().st_size, self._who.at, self._quota) is None:
            copy = history.keep_snapshot(copy)
        if (last := self._cover().get("name")) is not None:
            history.drop_unless_kept(self._path, last)
        held = orjson.dumps({"at": self._who.at, "name": copy.name}).decode()
        self._writer.raw.execute("INSERT OR REPLACE INTO _meta VALUES (?, ?)", (_COVER, held))
        return True

    def _cover(self) -> dict[str, str]:
        """Return the time and the name of the last snapshot taken for this."""
        found: str | None = self._writer.raw.execute("SELECT value FROM _meta WHERE key = ?", (_COVER,)).get
        return orjson.loads(found) if found else {}

    def _covered_until(self) -> str | None:
        """Return the time of the last snapshot taken for this, if it still exists."""
        held = self._cover()
        return held["at"] if held.get("name") in {path.name for path in history.snapshots_of(self._path)} else None

    def _thin_young(self, need: int) -> None:
        sizes = self._writer.raw.execute(
            "SELECT id, ifnull(octet_length(before), 0) + ifnull(octet_length(after), 0) AS size FROM _changelog"
            " WHERE before IS NOT NULL OR after IS NOT NULL ORDER BY id"
        )
        if (last := _last_of(need, sizes)) is not None:
            with self._writing():
                self._thin("SELECT ?", last)

    def _delete_entries(self, need: int) -> None:
        """Delete the oldest entries, which without images say only who wrote to which row, and when."""
        raw = self._writer.raw
        [(size,)] = raw.execute("SELECT sum(pgsize) FROM dbstat('main', 1) WHERE name GLOB '_changelog*'").fetchall()
        need = min(need, size - self._changelog_bytes)
        if need <= 0:
            return
        sizes = raw.execute(
            "SELECT id, ? + ifnull(octet_length(detail), 0) FROM _changelog"
            " WHERE id < (SELECT max(id) FROM _changelog) ORDER BY id",  # the chain goes on from the last one
            (_ENTRY,),
        )
        if (last := _last_of(need, sizes)) is None:
            return
        with self._writing():
            closed, digest = self._last_closed(last)
            raw.execute("DELETE FROM _changelog WHERE id <= ?", (last,))
            self._close_chain(closed, digest, entries_dropped=raw.changes())

    def _purge(self, tombstones: list[Tombstone]) -> int:
        """Delete rows for good, except those that another row refers to; return the bytes they had."""
        writer = self._writer
        purged: dict[str, list[int]] = defaultdict(list)
        freed = 0
        for _, table, row_id, size in tombstones:
            deadline.check()
            is_deleted = writer.delete_alone(table, row_id)
            writer.capture.changes = []  # logging the values would free nothing
            if is_deleted:
                purged[table].append(row_id)
                freed += size
        for table, row_ids in purged.items():
            self._log(table, {"purged": len(row_ids), "row_ids": _ranges(sorted(row_ids))})
            self.purged += len(row_ids)
        return freed

    def _thin(self, which: str, *values: Any) -> None:
        """Drop the images of entries up to one that a statement finds, and close that part of the chain."""
        raw = self._writer.raw
        [(last,)] = raw.execute(which, values).fetchall()
        if last is None:
            return
        raw.execute(
            "UPDATE _changelog SET before = NULL, after = NULL"
            " WHERE id <= ? AND (before IS NOT NULL OR after IS NOT NULL)",
            (last,),
        )
        self.thinned += raw.changes()
        self._close_chain(*self._last_closed(last))

    def _last_closed(self, last: int) -> tuple[int, bytes]:
        """Return the number and the hash of the entry that the part of the chain without images ends with."""
        last = max(last, self._writer.changelog.closed_up_to())
        [(digest,)] = self._writer.raw.execute("SELECT hash FROM _changelog WHERE id = ?", (last,)).fetchall()
        return last, digest

    def _close_chain(self, last: int, digest: bytes, **more: int) -> None:
        """Log a hash of what is left of the entries up to one, so that a later edit of them is still detected."""
        left = self._writer.changelog.digest_up_to(last)
        self._log(None, {"thinned_to": last, "hash": digest.hex(), "digest": left, **more})

    def _log(self, table: str | None, what: dict[str, Any]) -> None:
        self._writer.changelog.add(self._who, [("purge", table, None, None, None, orjson.dumps(what).decode())])

    def _writing(self) -> AbstractContextManager[Writer]:
        return self._writer.writing(self._who, self._quota, reserve=0, may_delete=True, max_value=file.MAX_HOST_VALUE)


def _oldest(writer: Writer, until: str, need: float = float("inf")) -> list[Tombstone]:
    """Return tombstones up to a time, oldest first, until they have the needed bytes."""
    found: list[Tombstone] = []
    with ExitStack() as cursors:
        tables = writer.connection.tables()
        for each in heapq.merge(*(cursors.enter_context(closing(_of(writer, table, until))) for table in tables)):
            if need <= 0:
                break
            deadline.check()
            found.append(each)
            need -= each.size
    return found


def _of(writer: Writer, table: str, until: str) -> Generator[Tombstone]:
    row_id = row_id_of(writer.columns(table))
    size = " + ".join(f"ifnull(octet_length({quoted(name)}), 0)" for name in writer.connection.columns(table))
    with closing(
        writer.raw.execute(
            f"SELECT _deleted_at, {row_id}, {size} FROM main.{quoted(table)} WHERE _deleted_at <= ?"
            " ORDER BY _deleted_at LIMIT ?",
            (until, _MAX_AT_ONCE),
        )
    ) as cursor:
        for at, number, bytes_ in cursor:
            yield Tombstone(at, table, number, bytes_)


def _last_of(need: int, sizes: Any) -> int | None:
    """Return the number up to which the sizes add up to the needed bytes, or the last one."""
    last = None
    with closing(sizes):
        for number, size in deadline.checked(sizes):
            last = number
            need -= size
            if need <= 0:
                break
    return last


def _ranges(numbers: list[int]) -> list[list[int]]:
    """Return sorted numbers as the first and last of each range."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


# Rewrite tables whose pages are half empty, so that deleted rows free whole pages.
#
# SQLite merges pages only when two thirds of one are empty, and appends new rows: after every second row was deleted,
# none of that space is ever used again. VACUUM would renumber row ids, which the changelog refers to, and with
# temporary files in memory it needs as much memory as the file is long.


MIN_WASTE = 0.2  # empty share of a table's pages; below that a rewrite is not worth its time

_CHUNK_BYTES = 1024 * 1024
_MAX_CHUNK_ROWS = 5_000
_MIN_PAGES = 8
_CACHE_KIB = 16_000


def repack(connection: GuardedConnection) -> None:
    """Rewrite every table with much empty space in its pages, in chunks, each in its own transaction."""
    raw = connection.raw
    names = [*connection.tables(), "_changelog"]
    wasteful = raw.execute(
        "SELECT name, ncell, payload FROM dbstat('main', 1) WHERE unused > pgsize * ? AND pageno >= ?",
        (MIN_WASTE, _MIN_PAGES),
    ).fetchall()
    with _for_rewriting(raw):
        for name, rows, size in wasteful:
            if name in names:
                _rewrite(connection, name, max(1, min(_MAX_CHUNK_ROWS, _CHUNK_BYTES * rows // max(size, 1))))


@contextmanager
def _for_rewriting(raw: Raw) -> Generator[None]:
    """Switch foreign keys off: rewriting a row must not delete the rows that refer to it."""
    raw.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 0)
    raw.pragma("cache_size", -_CACHE_KIB)
    try:
        yield
    finally:
        raw.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 1)
        raw.pragma("cache_size", -file.CACHE_KIB)


def _rewrite(connection: GuardedConnection, table: str, chunk_rows: int) -> None:
    columns = connection.columns(table)
    try:
        row_id = row_id_of(columns)
    except Refusal:
        return
    last: int | None = -(2**63)
    while last is not None:
        deadline.check()
        try:
            last = _rewrite_chunk(connection.raw, table, row_id, columns, last, chunk_rows)
        except (apsw.ConstraintError, apsw.FullError, apsw.NoMemError):
            return  # the chunk was rolled back; the rest stays less compact


def _rewrite_chunk(raw: Raw, table: str, row_id: str, columns: list[str], after: int, rows: int) -> int | None:
    """Delete rows and insert them again in order, which fills pages; return the last row id, None at the end."""
    name, named = f"main.{quoted(table)}", ", ".join(map(quoted, columns))
    with file.transaction(raw):
        raw.execute(
            f"CREATE TEMP TABLE _chunk AS SELECT {row_id} AS _row, {named} FROM {name}"
            f" WHERE {row_id} > ? ORDER BY {row_id} LIMIT ?",
            (after, rows),
            can_cache=False,
        )
        [(last,)] = raw.execute("SELECT max(_row) FROM temp._chunk", can_cache=False).fetchall()
        raw.execute(f"DELETE FROM {name} WHERE {row_id} IN (SELECT _row FROM temp._chunk)", can_cache=False)
        raw.execute(
            f"INSERT INTO {name} ({row_id}, {named}) SELECT _row, {named} FROM temp._chunk ORDER BY _row",
            can_cache=False,
        )
        raw.execute("DROP TABLE temp._chunk", can_cache=False)
    return last


# Operations about the key of a file, for the host.


@operation("rekey", "upkeep", is_long=True)
def rekey(db: OpenDatabase, new_key: str) -> dict[str, Any]:
    """Encrypt the file and its snapshots with another key, except those that have it already.

    The file comes last: while it has the old key, a rotation that was cut off can be detected and finished.
    """
    db.close()
    key = bytes.fromhex(new_key)
    damaged: list[str] = []
    for each in (*history.snapshots_of(db.path), db.path):
        if file.opens(each, key):
            continue
        try:
            file.change_key(each, None if file.is_plain(each) else db.key, key)
        except apsw.NotADBError:
            if each == db.path:
                raise Refusal("unreadable", "The database cannot be read with its key.") from None
            damaged.append(each.name)  # a damaged snapshot must not stop the rotation
    db.key = key
    return {"rekeyed": True, "damaged": damaged}


@operation("check")
def check_key(db: OpenDatabase) -> dict[str, Any]:
    """Check that the file can be read with its key."""
    with db.reader.looking() as connection:
        connection.raw.execute("SELECT count(*) FROM main.sqlite_schema").fetchall()
    return {"readable": True}


@operation("prepare", "upkeep", is_long=True)
def prepare(db: OpenDatabase) -> dict[str, Any]:
    """Delete expired snapshots before the first use of a file, and return columns that hide SQLite's row id.

    Only 0.1 made such columns, and 0.2 renames them: a file that still has some is left as it is.
    """
    with db.reader.looking() as connection:
        hidden = [f"{table}.{name}" for table in connection.tables() for name in free_names(connection.columns(table))]
    if not hidden:
        history.delete_expired(db.path, db.who.at)
    return {"hides_row_id": hidden}


@operation("note_key_shown", "write", uses_reserve=True)
def note_key_shown(db: OpenDatabase) -> dict[str, Any]:
    """Record in the changelog that a person was shown the key."""
    log_schema(db.writer, None, {"key_shown": True})
    return {}
