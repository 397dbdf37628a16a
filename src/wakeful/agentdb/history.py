"""Snapshots: encrypted copies of a file from before a migration.

Only the latest few are kept. One that has the last copy of rows, because a table was dropped or deleted rows were
purged early, is kept for 30 days in any case.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import apsw
import orjson

from wakeful.agentdb import deadline, file, schema
from wakeful.agentdb.changelog import Changelog, from_json
from wakeful.agentdb.connection import (
    SYSTEM_COLUMNS,
    GuardedConnection,
    OpenDatabase,
    Writer,
    no_such_table,
    quoted,
    row_id_of,
)
from wakeful.agentdb.errors import FREE_AT, Refusal
from wakeful.agentdb.file import Raw
from wakeful.agentdb.guard import is_reserved
from wakeful.agentdb.operation import name_of, operation

KEPT = 5
KEPT_FOR = timedelta(days=30)
KEPT_EVERY = timedelta(hours=1)
MAX_KEPT_QUOTAS = 5  # size of all that are kept for 30 days, in quotas of the database

_MARK = "-kept"


def take_snapshot(path: Path, at: str) -> Path:
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
                file.write_all(target, block)
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


def keep_snapshot(copy: Path) -> Path:
    """Keep a copy for 30 days."""
    return copy.rename(copy.with_name(f"{copy.stem}{_MARK}{copy.suffix}"))


def delete_old(path: Path) -> None:
    """Delete all but the latest few of those that are not kept for 30 days."""
    for old in [each for each in snapshots_of(path) if not _is_kept(each)][:-KEPT]:
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


def snapshots_of(path: Path) -> list[Path]:
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
        for each in (() if db.is_new else reversed(snapshots_of(db.path)))
    ]


def kept_of(path: Path) -> list[Path]:
    """Return those that are kept for 30 days, oldest first."""
    return [each for each in snapshots_of(path) if _is_kept(each)]


class MigrationSnapshot:
    """The snapshot before a migration; kept for 30 days if the migration drops rows."""

    def __init__(self, path: Path, key: bytes, at: str, quota: int) -> None:
        self._path, self._key, self._at, self._quota = path, key, at, quota
        self._copy = take_snapshot(path, at)
        self._is_kept = False

    @property
    def name(self) -> str:
        return self._copy.name

    def keep_rows(self, connection: GuardedConnection, table: str) -> None:
        """Keep this snapshot for 30 days, unless a kept one has the rows of a table; refuse if there is no space."""
        if self._is_kept or self._is_held(connection, table):
            return
        check_room(self._path, self._copy.stat().st_size, self._at, self._quota)
        self._copy = keep_snapshot(self._copy)
        self._is_kept = True

    def discard(self) -> None:
        self._copy.unlink(missing_ok=True)

    def _is_held(self, connection: GuardedConnection, table: str) -> bool:
        """Return whether a kept copy of the last hour has every row of a table."""
        since = datetime.fromisoformat(self._at) - KEPT_EVERY
        for copy in kept_of(self._path):
            if _made_at(copy) <= since:
                continue
            with closing(file.open_copy(copy, self._key)) as raw:
                if _has_all(_rows(raw, connection, table), _rows(connection.raw, connection, table)):
                    return True
        return False


def _has_all(held: Iterator[tuple[Any, ...]], wanted: Iterator[tuple[Any, ...]]) -> bool:
    """Return whether all wanted rows are among the held, both in the order of row ids."""
    return all(next((other for other in held if other[0] >= row[0]), None) == row for row in wanted)


def _rows(raw: file.Raw, connection: GuardedConnection, table: str) -> Iterator[tuple[Any, ...]]:
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


# The operation `undo`: revert the rows that a run wrote, except those changed since.


_MAX_LISTED = 200


@operation(
    "undo",
    "write",
    is_long=True,
    uses_reserve=True,
    keeps_host_values=True,
    logged_as="undo",
    logged_arguments={"undoes": "run_id"},
    command="undo",
)
def undo_run(db: OpenDatabase, run_id: str) -> dict[str, Any]:
    """Restore rows to their values before a run. Rows that it inserted are soft-deleted."""
    writer = db.writer
    rows: dict[tuple[str, int], list[tuple[Any, ...]]] = {}
    others: list[dict[str, Any]] = []
    for entry in writer.raw.execute(
        "SELECT id, op, table_name, row_id, before, after, detail FROM _changelog WHERE run_id = ? ORDER BY id",
        (run_id,),
    ).fetchall():
        _, op, table, row_id, *_ = entry
        if row_id is not None:
            rows.setdefault((table, row_id), []).append(entry)
        elif op == "schema":
            others.append({"table": table, "why": "changes of the schema and of views are not undone"})
    undone = 0
    for (table, row_id), entries in deadline.checked(rows.items()):
        problem = _undo_row(writer, run_id, table, row_id, entries)
        if problem is None:
            undone += 1
        else:
            others.append({"table": table, "row_id": row_id, "why": problem})
    return {"run_id": run_id, "undone": undone, "left": others[:_MAX_LISTED], "left_count": len(others)}


def _undo_row(writer: Writer, run_id: str, table: str, row_id: int, entries: list[tuple[Any, ...]]) -> str | None:
    """Undo the changes of a run to one row; return why it cannot be done, else None."""
    problem = _changed_since(writer, run_id, table, row_id, entries[0][0])
    if problem is not None:
        return problem
    if any(detail is not None for *_, detail in entries):
        return "its key was changed"
    if any(after is None for *_, after, _ in entries):
        return "its earlier values are no longer kept"
    before = entries[0][4]
    names = writer.columns(table)
    if not names:
        return "the table is gone"
    chosen = f"{row_id_of(names)} = ?"
    now = writer.raw.execute(f"SELECT * FROM main.{quoted(table)} WHERE {chosen}", (row_id,)).fetchone()
    if now is None:
        return "the row is gone"
    if before is None:
        put = {"_deleted_at": writer.who.at}
    else:
        # An entry has the old values of changed columns, so the first entry with a column has the value before the run.
        put = {
            _renamed(writer, table, entry[0]).get(str(name), str(name)): from_json(value)
            for entry in reversed(entries)
            for name, value in orjson.loads(entry[4]).items()
        }
        if not put.keys() <= set(names):
            return "the table has lost a column since"
    written = ", ".join(f"{quoted(name)} = ?" for name in put)
    try:
        with writer.raw:  # a savepoint
            writer.raw.execute(f"UPDATE main.{quoted(table)} SET {written} WHERE {chosen}", (*put.values(), row_id))
    except apsw.ConstraintError as error:
        return f"another row is in its way ({error})"
    return None


def _renamed(writer: Writer, table: str, number: int) -> dict[str, str]:
    """Return the new names of columns that the host has renamed since an entry."""
    found = writer.raw.execute(
        "SELECT detail FROM _changelog WHERE op = 'schema' AND table_name = ? AND id > ?"
        " AND detail LIKE '{\"renamed_columns\"%'",
        (table, number),
    ).fetchall()
    return {old: new for (detail,) in found for old, new in orjson.loads(detail)["renamed_columns"].items()}


def _changed_since(writer: Writer, run_id: str, table: str, row_id: int, first: int) -> str | None:
    since = writer.raw.execute(
        "SELECT at, actor, run_id, op FROM _changelog WHERE table_name = ? AND row_id = ? AND id > ?"
        " AND run_id IS NOT ? ORDER BY id DESC LIMIT 1",
        (table, row_id, first, run_id),
    ).fetchone()
    if since is None:
        return None
    at, actor, other, op = since
    if op == "undo":
        return f"it was undone already, at {at}"
    by = f"run {other}" if other else f"the {actor}"
    return f"it was changed since, at {at}, by {by}"


# Operations that read the changelog and check that it is complete and unchanged.


Head = tuple[int, str]  # number and hash, in hexadecimal, of the last entry that the server knows


@operation("changelog", path="GET /changelog", command="log")
def read_changelog(
    db: OpenDatabase,
    run_id: str | None = None,
    table: str | None = None,
    row_id: int | None = None,
    before: int | None = None,
    limit: int = 100,
) -> dict[str, Any]:
    """Return entries, newest first, older than the entry `before`; a page of very large entries has fewer."""
    with db.reader.looking() as connection:
        changes, is_more = Changelog(connection.raw).read(run_id, table, row_id, before, limit)
    return {"changes": changes, "is_more": is_more}


@operation("verify", is_long=True, path="GET /verify", command="verify")
def verify(db: OpenDatabase, known: Head | None = None) -> dict[str, Any]:
    """Check the hash chain, and that it reaches the last entry that the server knows."""
    with db.reader.looking() as connection:
        log = Changelog(connection.raw)
        broken_at, last = log.find_break(), log.last()[0]
        is_cut_off = known is not None and last < known[0]
        if broken_at is None and is_cut_off:
            broken_at = last + 1
        elif broken_at is None and known is not None and not log.has(known[0], bytes.fromhex(known[1])):
            broken_at = 1  # an intact chain, but another one
    return {"intact": broken_at is None, "broken_at": broken_at, "is_cut_off": is_cut_off}


@operation("reaches")
def chain_reaches(db: OpenDatabase, known: Head) -> dict[str, Any]:
    """Return whether the changelog has the last entry that the server knows, and its own last entry."""
    number, digest = known
    with db.reader.looking() as connection:
        log = Changelog(connection.raw)
        last, head = log.last()
        at = connection.raw.execute("SELECT at FROM _changelog WHERE id = ?", (last,)).get
        has = log.has(number, bytes.fromhex(digest))
        return {"reaches": last > number or has, "has": has, "last": last, "hash": head.hex(), "at": at}


# The operation `recover`: copy a table from a snapshot into the database.


_ROWS_AT_ONCE = 1_000


@operation(
    "recover",
    "write",
    scope="admin",
    is_long=True,
    creates_file=True,
    table_arguments=("new_name", "table"),
    command="recover",
)
def recover(db: OpenDatabase, snapshot: str, table: str, new_name: str | None = None) -> dict[str, Any]:
    """Copy a table of a snapshot into the database with its row ids, under its own name or another."""
    writer = db.writer
    name = new_name or table
    schema.check_name(name, "table")
    if name.lower() in {each.lower() for each in writer.connection.tables()}:
        raise Refusal("conflict", f"The table {name!r} exists. Give the recovered one another name.", field="new_name")
    copy = next((each for each in snapshots_of(db.path) if each.name == snapshot), None)
    if copy is None:
        raise Refusal("not_found", f"There is no snapshot {snapshot!r}. See {name_of('snapshots')}.", field="snapshot")
    with closing(file.open_copy(copy, db.key)) as source:
        before = schema.texts(writer.connection)
        _create(writer, source, table, name)
        count = _copy_rows(writer, source, table, name)
        schema.check_changed(writer.connection, before)
    schema.log_schema(writer, name, {"recovered": table, "snapshot": snapshot, "rows": count})
    return {"table": name, "recovered": count, "snapshot": snapshot}


def _create(writer: Writer, source: Raw, table: str, name: str) -> None:
    tables = [each for (each,) in source.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
    if table not in tables or is_reserved(table):
        raise no_such_table(table, [each for each in tables if not is_reserved(each)])
    [(sql,)] = source.execute("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?", (table,)).fetchall()
    schema.run(writer, sql if name == table else schema.with_name(sql, table, name))
    writer.forget_columns()
    for column in writer.columns(name):
        if column not in SYSTEM_COLUMNS:
            schema.check_name(column, "column")
    purpose = source.execute("SELECT purpose FROM _tables WHERE name = ?", (table,)).get or ""
    writer.raw.execute("INSERT OR REPLACE INTO _tables VALUES (?, ?)", (name, purpose))


def _copy_rows(writer: Writer, source: Raw, table: str, name: str) -> int:
    columns = writer.columns(name)
    id_name = row_id_of(columns)
    named = ", ".join([id_name, *map(quoted, columns)])
    places = ", ".join("?" * (len(columns) + 1))
    rows: Iterator[tuple[Any, ...]] = source.execute(f"SELECT {named} FROM main.{quoted(table)} ORDER BY {id_name}")
    count = 0
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        writer.raw.executemany(f"INSERT INTO main.{quoted(name)} ({named}) VALUES ({places})", some)
        count += len(some)
        writer.flush("import")
    return count
