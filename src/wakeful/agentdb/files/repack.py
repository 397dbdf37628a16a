"""Rewrite tables whose pages are half empty, so that deleted rows free whole pages.

SQLite merges pages only when two thirds of one are empty, and appends new rows: after every second row was deleted,
none of that space is ever used again. VACUUM would renumber row ids, which the changelog refers to, and with temporary
files in memory it needs as much memory as the file is long.
"""

from collections.abc import Generator
from contextlib import contextmanager

import apsw

from wakeful.agentdb.database import GuardedConnection, quoted, row_id_of
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.files import files
from wakeful.agentdb.files.files import Raw
from wakeful.agentdb.process import deadline

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
        raw.pragma("cache_size", -files.CACHE_KIB)


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
    with files.transaction(raw):
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
