"""Snapshots: encrypted copies of a file from before a migration.

Only the latest few are kept. One that has the last copy of rows, because a table was dropped or deleted rows were
purged early, is kept for 30 days in any case.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from wakeful.agentdb.database import GuardedConnection, quoted, row_id_of
from wakeful.agentdb.errors import FREE_AT, Refusal
from wakeful.agentdb.files import files
from wakeful.agentdb.files.open_database import OpenDatabase
from wakeful.agentdb.operation import name_of, operation

KEPT = 5
KEPT_FOR = timedelta(days=30)
KEPT_EVERY = timedelta(hours=1)
MAX_KEPT_QUOTAS = 5  # size of all that are kept for 30 days, in quotas of the database

_MARK = "-kept"


def take(path: Path, at: str) -> Path:
    """Copy the file. Call it inside a write transaction that has not written yet: it keeps others from writing."""
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise Refusal("unavailable", "The database is in use elsewhere, so no snapshot could be made. Try again.")
    folder = path.parent / "snapshots"
    folder.mkdir(mode=0o700, exist_ok=True)
    copy = folder / f"{at.replace(':', '').replace('+0000', 'Z')}-{secrets.token_hex(3)}.sqlite"
    try:
        with (
            path.open("rb") as source,
            os.fdopen(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", buffering=0) as target,
        ):
            while block := source.read(1024 * 1024):
                files.write_all(target, block)
            os.fsync(target.fileno())
    except BaseException:
        copy.unlink(missing_ok=True)  # half a copy is of no use, and the disk may be full
        raise
    return copy


def room_at(path: Path, size: int, at: str, quota: int) -> datetime | None:
    """Return when one more copy can be kept for 30 days; None: now."""
    delete_expired(path, at)
    now, kept = datetime.fromisoformat(at), kept_of(path)
    free_at = [_made_at(kept[-1]) + KEPT_EVERY] if kept else []
    over = sum(each.stat().st_size for each in kept) + size - MAX_KEPT_QUOTAS * quota
    for each in kept:
        if over <= 0:
            break
        over -= each.stat().st_size
        free_at.append(_made_at(each) + KEPT_FOR)
    last = max(free_at, default=now)
    return _rounded_up(last) if last > now else None


def check_room(path: Path, size: int, at: str, quota: int) -> None:
    """Refuse if no further copy can be kept for 30 days now."""
    free_at = room_at(path, size, at, quota)
    if free_at is not None:
        raise Refusal(
            "limit",
            "This removes rows for good, so a copy of the database must be kept for 30 days, and there is no space for "
            f"one: at most one an hour, and {MAX_KEPT_QUOTAS} times the quota for all. Nothing was changed. There is "
            f"space again at {FREE_AT}; until then use {name_of('delete')}, which can be undone.",
            free_at=free_at,
        )


def keep(copy: Path) -> Path:
    """Keep a copy for 30 days."""
    return copy.rename(copy.with_name(f"{copy.stem}{_MARK}{copy.suffix}"))


def delete_old(path: Path) -> None:
    """Delete all but the latest few of those that are not kept for 30 days."""
    for old in [each for each in of(path) if not _is_kept(each)][:-KEPT]:
        old.unlink(missing_ok=True)


def drop_unless_kept(path: Path, name: str) -> None:
    """Delete a copy that is not kept for 30 days."""
    copy = path.parent / "snapshots" / name
    if not _is_kept(copy):
        copy.unlink(missing_ok=True)


def delete_expired(path: Path, at: str) -> None:
    """Delete those that were kept for 30 days."""
    now = datetime.fromisoformat(at)
    for each in kept_of(path):
        if _made_at(each) + KEPT_FOR <= now:
            each.unlink(missing_ok=True)


def of(path: Path) -> list[Path]:
    """Return the snapshots of a database, oldest first."""
    return sorted((path.parent / "snapshots").glob("*.sqlite"))


@operation("snapshots", path="GET /snapshots", command="snapshots")
def list_snapshots(db: OpenDatabase) -> list[dict[str, Any]]:
    """Describe the snapshots of a database, latest first."""
    return [
        {
            "name": each.name,
            "at": _made_at(each).isoformat(),
            "bytes": each.stat().st_size,
            "kept_until": (_made_at(each) + KEPT_FOR).isoformat() if _is_kept(each) else None,
        }
        for each in (() if db.is_new else reversed(of(db.path)))
    ]


def kept_of(path: Path) -> list[Path]:
    """Return those that are kept for 30 days, oldest first."""
    return [each for each in of(path) if _is_kept(each)]


class MigrationSnapshot:
    """The snapshot before a migration; kept for 30 days if the migration drops rows."""

    def __init__(self, path: Path, key: bytes, at: str, quota: int) -> None:
        self._path, self._key, self._at, self._quota = path, key, at, quota
        self._copy = take(path, at)
        self._is_kept = False

    @property
    def name(self) -> str:
        return self._copy.name

    def keep_rows(self, connection: GuardedConnection, table: str) -> None:
        """Keep this snapshot for 30 days, unless a kept one has the rows of a table; refuse if there is no space."""
        if self._is_kept or self._is_held(connection, table):
            return
        check_room(self._path, self._copy.stat().st_size, self._at, self._quota)
        self._copy = keep(self._copy)
        self._is_kept = True

    def discard(self) -> None:
        self._copy.unlink(missing_ok=True)

    def _is_held(self, connection: GuardedConnection, table: str) -> bool:
        """Return whether a kept copy of the last hour has every row of a table."""
        since = datetime.fromisoformat(self._at) - KEPT_EVERY
        for copy in kept_of(self._path):
            if _made_at(copy) <= since:
                continue
            with closing(files.open_copy(copy, self._key)) as raw:
                if _has_all(_rows(raw, connection, table), _rows(connection.raw, connection, table)):
                    return True
        return False


def _has_all(held: Iterator[tuple[Any, ...]], wanted: Iterator[tuple[Any, ...]]) -> bool:
    """Return whether all wanted rows are among the held, both in the order of row ids."""
    return all(next((other for other in held if other[0] >= row[0]), None) == row for row in wanted)


def _rows(raw: files.Raw, connection: GuardedConnection, table: str) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a table with their row ids, or none if columns are missing."""
    columns = connection.columns(table)
    found = {name for (name,) in raw.execute("SELECT name FROM pragma_table_info(?)", (table,))}
    if not found.issuperset(columns):
        return iter(())
    id_name = row_id_of([*columns, *found])
    named = ", ".join(quoted(name) for name in columns)
    return iter(raw.execute(f"SELECT {id_name}, {named} FROM main.{quoted(table)} ORDER BY {id_name}"))


def _is_kept(copy: Path) -> bool:
    return copy.stem.endswith(_MARK)


def _rounded_up(time: datetime) -> datetime:
    whole = time.replace(second=0, microsecond=0)
    return whole if whole == time else whole + timedelta(minutes=1)


def _made_at(copy: Path) -> datetime:
    return datetime.fromisoformat(copy.name.split("Z-")[0] + "Z")
