"""The changelog: an entry for every row that changes, in a hash chain.

SQLite reports each row before it changes (the preupdate hook), so no statement can bypass it. Entries are written in
the same transaction, each with a hash over itself and the one before, so a later edit of an entry can be detected.
"""

# pyright: reportUnknownMemberType=false
import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from wakeful.agentdb import deadline
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.file import Raw
from wakeful.agentdb.guard import is_reserved
from wakeful.agentdb.operation import name_of

MAX_CHANGES = 20_000  # rows that one call may change
MAX_BYTES = 32 * 1024 * 1024  # of their text and blobs, before and after
ENTRY_BYTES = 400  # of an entry with small images and its share of the indexes, about

SCHEMA = """
CREATE TABLE _changelog (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    actor TEXT NOT NULL,
    run_id TEXT,
    op TEXT NOT NULL,
    table_name TEXT,
    row_id INTEGER,
    before TEXT,
    after TEXT,
    detail TEXT,
    hash BLOB NOT NULL
) STRICT;
CREATE INDEX _changelog_by_run ON _changelog (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX _changelog_by_row ON _changelog (row_id) WHERE row_id IS NOT NULL;
"""
COLUMNS = ("id", "at", "actor", "run_id", "op", "table_name", "row_id", "before", "after", "detail")
_LONG = tuple(COLUMNS.index(name) for name in ("before", "after", "detail"))
MAX_SHOWN = 2_000_000  # characters of a page of entries
_ADD = f"INSERT INTO _changelog ({', '.join(COLUMNS)}, hash) VALUES ({', '.join('?' * 11)})"

_SIZED = (str, bytes)
_INFINITY = float("inf")
PLAIN = frozenset({str, int, float, type(None)})  # types that SQLite stores without conversion

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """Time and author of a write, set by the host."""

    at: str  # ISO 8601 UTC
    actor: str
    run_id: str | None = None


class Change(NamedTuple):
    """One row change as SQLite reported it."""

    op: str
    table: str
    row_id: int
    moved_to: int
    old: Row | None
    new: Row | None


class Capture:
    """Collects the row changes of one transaction, except those of the host's own tables."""

    def __init__(self, connection: Raw) -> None:
        self._connection = connection
        self.changes: list[Change] = []
        self.may_delete = False
        self._measures = True
        self._bytes = 0
        self._table, self._is_ours = "", False

    def begin(self, *, may_delete: bool, is_bounded: bool = False) -> None:
        """Start collecting. A write that is bounded by its request need not be measured."""
        self.changes = []
        self._bytes = 0
        self.may_delete = may_delete
        self._measures = not is_bounded
        self.turn(on=True)

    def turn(self, *, on: bool) -> None:
        """Set or remove the hook; it costs time even for rows that it ignores."""
        self._connection.preupdate_hook(self._note if on else None, id="changelog")

    def _note(self, update: Any) -> None:
        table = update.table_name
        if table != self._table:  # checked once for many rows of a table
            self._table, self._is_ours = table, is_reserved(table) or update.database_name != "main"
        if self._is_ours:
            return
        # An exception does not stop the statement, which may have millions of rows to go; an interrupt does.
        try:
            self._add(update, table)
        except BaseException:
            self._connection.interrupt()
            raise

    def _add(self, update: Any, table: str) -> None:
        op, old, new = update.op, update.old, update.new
        if op == "DELETE" and not self.may_delete:
            raise Refusal(
                "refused",
                f"This would delete a row of {table!r} for good, as REPLACE does with a row in its way. "
                f"Nothing was changed. Use {name_of('upsert')} to insert or update, or {name_of('delete')} to "
                "delete, which can be undone.",
            )
        if new is not None and (_INFINITY in new or -_INFINITY in new):
            raise Refusal("invalid", "A number must be finite, got infinity. Nothing was changed. Use NULL or a text.")
        if self._measures:
            self._bytes += _size(old) + _size(new)
        # Change(…) would do the same, but slower; there may be thousands.
        self.changes.append(tuple.__new__(Change, (op, table, update.rowid, update.rowid_new, old, new)))
        if len(self.changes) > MAX_CHANGES or self._bytes > MAX_BYTES:
            raise _too_much()


def _too_much() -> Refusal:
    return Refusal(
        "limit",
        f"One call must change at most {MAX_CHANGES:,} rows and {MAX_BYTES // 1024**2} MB; this one would change more. "
        "Nothing was changed. Narrow it, for example to a range of ids, and call several times.",
    )


def _size(values: Row | None) -> int:
    return 0 if values is None else sum([len(value) for value in values if value.__class__ in _SIZED])


class Changelog:
    """The changelog of one open database."""

    def __init__(self, connection: Raw) -> None:
        self._connection = connection

    def last(self) -> tuple[int, bytes]:
        """Return the number and the hash of the last entry."""
        found = self._connection.execute("SELECT id, hash FROM _changelog ORDER BY id DESC LIMIT 1").fetchone()
        return (found[0], found[1]) if found else (0, b"")

    def add(self, who: Who, entries: Iterable[tuple[Any, ...]]) -> tuple[int, bytes]:
        """Append entries (op, table, row id, before, after, detail); return the number and hash of the last one."""
        number, digest = self.last()
        rows: list[tuple[Any, ...]] = []
        at, actor, run_id = who.at, who.actor, who.run_id
        size = 0
        for op, table, row_id, before, after, detail in deadline.checked(entries):
            number += 1
            size += len(before or "") + len(after or "")
            row = (number, at, actor, run_id, op, table, row_id, before, after, detail)
            digest = chained(digest, row)
            rows.append((*row, digest))
        if size > 2 * MAX_BYTES:  # they are longer as JSON
            raise _too_much()
        if rows:
            self._connection.executemany(_ADD, rows)
        return number, digest

    def read(
        self, run_id: str | None, table: str | None, row_id: int | None, before: int | None, limit: int
    ) -> tuple[list[dict[str, Any]], bool]:
        """Return entries, newest first, up to a number and a size but at least one; and whether there are more."""
        cursor = self._connection.execute(
            f"SELECT {', '.join(COLUMNS)} FROM _changelog"
            " WHERE (:run IS NULL OR run_id = :run) AND (:table IS NULL OR table_name = :table)"
            " AND (:row IS NULL OR row_id = :row) AND (:before IS NULL OR id < :before) ORDER BY id DESC LIMIT :limit",
            {"run": run_id, "table": table, "row": row_id, "before": before, "limit": limit + 1},
        )
        found: list[dict[str, Any]] = []
        size = 0
        with closing(cursor):
            for row in deadline.checked(cursor):
                size += sum(len(row[place] or "") for place in _LONG)
                if len(found) == limit or (found and size > MAX_SHOWN):
                    return found, True
                found.append(_shown(row))
        return found, False

    def find_break(self) -> int | None:
        """Return the number of the first entry that breaks the hash chain, or None."""
        noted = self._checkpoint()
        digest, expected = b"", 1
        if noted is not None:
            if self.digest_up_to(noted["thinned_to"]) != noted["digest"]:
                return 1
            digest, expected = bytes.fromhex(noted["hash"]), noted["thinned_to"] + 1
        rows = self._connection.execute(
            f"SELECT {', '.join(COLUMNS)}, hash FROM _changelog WHERE id >= ? ORDER BY id", (expected,)
        )
        for *row, stored in deadline.checked(rows):
            digest = chained(digest, tuple(row))
            if row[0] != expected or digest != stored:
                return expected
            expected += 1
        return None

    def closed_up_to(self) -> int:
        """Return the number of the last entry whose images may have been dropped; 0 if there is none."""
        noted = self._checkpoint()
        return 0 if noted is None else noted["thinned_to"]

    def _checkpoint(self) -> dict[str, Any] | None:
        found = self._connection.execute(
            "SELECT detail FROM _changelog WHERE op = 'purge' AND detail LIKE '{\"thinned_to\"%'"
            " ORDER BY id DESC LIMIT 1"
        ).fetchone()
        return orjson.loads(found[0]) if found else None

    def has(self, number: int, digest: bytes) -> bool:
        """Return whether there is an entry with this number and hash."""
        found = self._connection.execute("SELECT hash FROM _changelog WHERE id = ?", (number,)).fetchone()
        return found is not None and found[0] == digest

    def digest_up_to(self, number: int) -> str:
        """Return one hash over all entries up to a number, as they are now."""
        whole = blake2b(digest_size=32)
        rows = self._connection.execute(
            f"SELECT {', '.join(COLUMNS)}, hash FROM _changelog WHERE id <= ? ORDER BY id", (number,)
        )
        for row in deadline.checked(rows):
            whole.update(orjson.dumps(row[:-1]) + row[-1])
        return whole.hexdigest()


def chained(before: bytes, row: Row) -> bytes:
    """Return the hash of an entry from the hash of the one before."""
    return blake2b(before + orjson.dumps(row), digest_size=32).digest()


def entries_of(
    changes: Sequence[Change], columns: Mapping[str, Sequence[str]], op: str | None
) -> Iterator[tuple[Any, ...]]:
    """Yield an entry for each captured change; without an op, it follows from the change itself."""
    for change in changes:
        kind, table, row_id, moved_to, old, new = change
        names = columns[table]
        if old is None and new is not None:  # the usual case, and there may be thousands
            after = orjson.dumps(dict(zip(names, new, strict=True)), default=blob_as_json).decode()
            yield op or "insert", table, row_id, None, after, None
            continue
        moved = orjson.dumps({"moved_to": moved_to}).decode() if moved_to != row_id else None
        before, after = _images(change, names)
        yield op or _op_of(kind, old, new, names), table, row_id, before, after, moved


def _images(change: Change, names: Sequence[str]) -> tuple[str | None, str | None]:
    """Return a row as JSON, before and after; of an update, only the columns that differ."""
    old, new = change.old, change.new
    if old is None or new is None:
        return _as_json(names, old), _as_json(names, new)
    places = [
        place
        for place, (before, after) in enumerate(zip(old, new, strict=True))
        if before is not after and (before != after or type(before) is not type(after))
    ]
    names = [names[place] for place in places]
    return _as_json(names, [old[place] for place in places]), _as_json(names, [new[place] for place in places])


def _as_json(names: Sequence[str], values: Sequence[Any] | None) -> str | None:
    if values is None:
        return None
    return orjson.dumps(dict(zip(names, values, strict=True)), default=blob_as_json).decode()


def blob_as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def from_json(value: Any) -> Any:
    """Convert a JSON value into one that SQLite stores; the inverse of `blob_as_json`."""
    match value:
        case {"base64": str(text), **others} if not others:
            try:
                return base64.b64decode(text, validate=True)
            except ValueError:
                raise Refusal("invalid", 'A value {"base64": …} is not base64.') from None
        case dict() | list():
            return _nested(value)
        case _:
            return int(value) if isinstance(value, bool) else value


def _nested(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # orjson writes 254 levels, and reads 1,024
        raise Refusal("invalid", "A value must be nested at most 250 levels deep. Store it as a text.") from None


def _op_of(kind: str, old: Row | None, new: Row | None, names: Sequence[str]) -> str:
    if kind == "DELETE":
        return "purge"
    assert old is not None
    assert new is not None
    place = names.index("_deleted_at")
    was_deleted, is_deleted = old[place] is not None, new[place] is not None
    if was_deleted == is_deleted:
        return "update"
    return "soft_delete" if is_deleted else "restore"


def _shown(row: Sequence[Any]) -> dict[str, Any]:
    entry: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
    for name in ("before", "after", "detail"):
        if entry[name] is not None:
            entry[name] = orjson.loads(entry[name])
    return entry
