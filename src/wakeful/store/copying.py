"""Copies the tables of an embedded store to PostgreSQL, and compares them."""

# pyright: reportUnknownMemberType=false
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import apsw
import asyncpg
import orjson

from wakeful.core.errors import Conflict, Unavailable
from wakeful.core.texts import to_storable
from wakeful.store.drivers.postgres import errors_named

# The tables of an embedded store, read in an order that does not change between two attempts.


# apsw's types name collections.abc.Buffer, which Python 3.11 does not have, so its methods count as partly unknown.
# Not copied: the schema's own record; the search index, which is built again; and what is about nodes.
LEFT_OUT = frozenset(
    {
        "migrations",
        "store_sequence",
        "search_texts",
        "search_progress",
        "nodes",
        "directories",
        "agent_directories",
        "store_moves",
    }
)
_INDEX = "search_terms"  # a virtual table and the tables that SQLite keeps for it

Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of the store."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]  # columns that tell rows apart; all of them if there is no primary key
    needs: frozenset[str]  # tables that its rows refer to
    rows: int


def find_tables(connection: apsw.Connection) -> list[Table]:
    """Return the tables to copy, each after those that it refers to."""
    found = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name"
    names = [str(name) for (name,) in cast("list[tuple[str]]", connection.execute(found).fetchall())]
    return _in_order([_read_table(connection, name) for name in names if _is_copied(name)])


def read_rows(connection: apsw.Connection, table: Table, after: int) -> Iterator[tuple[int, Values]]:
    """Yield the rows behind a rowid, each with its own."""
    columns = ", ".join(table.columns)
    rows = connection.execute(f"SELECT rowid, {columns} FROM {table.name} WHERE rowid > ? ORDER BY rowid", (after,))
    for row_id, *values in cast("Iterator[tuple[Any, ...]]", rows):
        yield row_id, _storable(values)


def read_sorted(connection: apsw.Connection, table: Table) -> Iterator[Values]:
    """Yield the rows in the order of their key."""
    columns, key = ", ".join(table.columns), ", ".join(table.key)
    for values in cast("Iterator[Values]", connection.execute(f"SELECT {columns} FROM {table.name} ORDER BY {key}")):
        yield _storable(values)


def _is_copied(name: str) -> bool:
    return name not in LEFT_OUT and name != _INDEX and not name.startswith(f"{_INDEX}_")


def _read_table(connection: apsw.Connection, name: str) -> Table:
    info = cast("list[tuple[Any, ...]]", connection.execute(f"PRAGMA table_info({name})").fetchall())
    columns = tuple(str(row[1]) for row in info)
    key = tuple(str(row[1]) for row in sorted(info, key=lambda row: row[5]) if row[5])
    references = cast("list[tuple[Any, ...]]", connection.execute(f"PRAGMA foreign_key_list({name})").fetchall())
    count = cast("int", connection.execute(f"SELECT COUNT(*) FROM {name}").get)
    needs = frozenset(str(row[2]) for row in references)
    return Table(name=name, columns=columns, key=key or columns, needs=needs, rows=count)


def _in_order(tables: list[Table]) -> list[Table]:
    ordered: list[Table] = []
    while len(ordered) < len(tables):
        done = {table.name for table in ordered}
        ordered += [table for table in tables if table.name not in done and table.needs <= done]
    return ordered


def _storable(values: Any) -> Values:
    """SQLite stores a NUL in a text, PostgreSQL does not."""
    return tuple(to_storable(value) if isinstance(value, str) else value for value in values)


# The PostgreSQL database that an embedded store is copied to.


_LOCK = 0x77616B66  # one move at a time
_LOCK_SECONDS = 5
_FETCH = 500  # rows of a cursor at once
# Rows of these were made by a person or a server, not by a migration.
USED = ("users", "agents", "sessions")

# As the migration that created it: the index is built in the background, at the first start.
INDEX_LATER = """
UPDATE search_progress SET
    sessions_before = (SELECT MAX(id) || '~' FROM sessions), messages_before = (SELECT MAX(id) || '~' FROM messages),
    next_number = 0, done = 0, total = (SELECT COUNT(*) FROM sessions) + (SELECT COUNT(*) FROM messages)
"""


class TargetInUse(Conflict):
    code = "move_target_in_use"


class TargetNotEmpty(Conflict):
    code = "move_target_not_empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreMove:
    """A move, as the target records it."""

    id: str
    directory_id: str
    finished_at: int | None
    undone_at: int | None
    progress: Mapping[str, tuple[int, int]]  # by table: the last rowid, and how many rows


class Target:
    """A connection that copies rows into PostgreSQL. The schema is there already."""

    def __init__(self, connection: "asyncpg.Connection[Any]") -> None:
        self._connection = connection

    async def find_move(self, move_id: str) -> StoreMove | None:
        rows = await self._connection.fetch("SELECT * FROM store_moves WHERE id = $1", move_id)
        return _read_move(rows[0]) if rows else None

    async def begin(self, move_id: str, directory_id: str, now: int, tables: Sequence[Table]) -> StoreMove:
        """Return this move as far as it got, or record it. Refuses a database that something else has filled."""
        async with self._connection.transaction():
            # A server that creates the first owner meanwhile waits for this, and then finds the move.
            await self._connection.execute("LOCK TABLE users IN EXCLUSIVE MODE")
            found = await self.find_move(move_id)
            if found is not None:
                return found
            await self.refuse_used()
            # Rows that migrations have made, and a move that was undone before it had copied anything.
            for name in (*[table.name for table in reversed(tables)], "store_moves"):
                await self._connection.execute(f"DELETE FROM {name}")
            await self._connection.execute(
                "INSERT INTO store_moves (id, directory_id, started_at, progress) VALUES ($1, $2, $3, '{}')",
                move_id,
                directory_id,
                now,
            )
        return StoreMove(id=move_id, directory_id=directory_id, finished_at=None, undone_at=None, progress={})

    async def add(self, move: StoreMove, table: Table, rows: Sequence[Values], last: int) -> StoreMove:
        """Add rows of a table, and record in the same transaction how far this is; return the move with that."""
        _, before = move.progress.get(table.name, (0, 0))
        progress = {**move.progress, table.name: (last, before + len(rows))}
        async with self._connection.transaction():
            await self._connection.copy_records_to_table(table.name, records=rows, columns=table.columns)
            await self._connection.execute(
                "UPDATE store_moves SET progress = $2 WHERE id = $1", move.id, orjson.dumps(progress).decode()
            )
        return StoreMove(
            id=move.id, directory_id=move.directory_id, finished_at=None, undone_at=None, progress=progress
        )

    async def read_sorted(self, table: Table) -> AsyncIterator[Values]:
        """Yield the rows in the order in which SQLite sorts them by their key."""
        types = {
            row["column_name"]: row["data_type"]
            for row in await self._connection.fetch(
                "SELECT column_name, data_type FROM information_schema.columns "
                "WHERE table_schema = current_schema() AND table_name = $1",
                table.name,
            )
        }
        collations = {"text": ' COLLATE "C"'}  # the order of bytes, as in SQLite
        order = ", ".join(f"{column}{collations.get(types[column], '')} NULLS FIRST" for column in table.key)
        query = f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {order}"
        async with self._connection.transaction(readonly=True):
            async for row in self._connection.cursor(query, prefetch=_FETCH):
                yield tuple(row)

    async def finish(self, move: StoreMove, now: int) -> None:
        """Let servers start on this database."""
        async with self._connection.transaction():
            await self._connection.execute(INDEX_LATER)
            await self._connection.execute("UPDATE store_moves SET finished_at = $2 WHERE id = $1", move.id, now)
        await self._connection.execute("ANALYZE")

    async def undo(self, move: StoreMove, now: int) -> None:
        """Keep servers from starting on this database. Its rows stay."""
        await self._connection.execute("UPDATE store_moves SET undone_at = $2 WHERE id = $1", move.id, now)

    async def now(self) -> int:
        """Return the server's time, by which nodes record their heartbeats."""
        clock = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)"
        return await self._connection.fetchval(clock)

    async def count_nodes(self, since: int) -> int:
        """Count the nodes that have been alive since a moment."""
        return await self._connection.fetchval("SELECT COUNT(*) FROM nodes WHERE seen_at > $1", since)

    async def count_runs(self, since: int) -> int:
        """Count the runs that were queued after a moment."""
        return await self._connection.fetchval("SELECT COUNT(*) FROM runs WHERE queued_at > $1", since)

    async def has_schema(self) -> bool:
        return await self._connection.fetchval("SELECT to_regclass('store_moves') IS NOT NULL")

    async def refuse_used(self) -> None:
        """Raise if somebody has worked with this database."""
        used = [name for name in USED if await self._connection.fetchval(f"SELECT EXISTS (SELECT 1 FROM {name})")]
        if used:
            raise TargetNotEmpty(
                f"The PostgreSQL database is not empty: it has rows in {', '.join(used)}. Nothing was changed there. "
                "Give an empty database, or empty this one yourself if nobody needs its content."
            )


@contextlib.asynccontextmanager
async def open_target(url: str) -> AsyncGenerator[Target]:
    """Connect to the target, and keep other moves away from it."""
    with errors_named():
        connection: asyncpg.Connection[Any] = await asyncpg.connect(url, timeout=30)
        try:
            try:  # the server notices only after a moment that a move was killed
                await connection.execute(f"SET lock_timeout = '{_LOCK_SECONDS}s'")
                await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
                await connection.execute("RESET lock_timeout")
            except asyncpg.LockNotAvailableError:
                raise TargetInUse(
                    "Another move to this PostgreSQL database is running. Wait until it has ended."
                ) from None
            yield Target(connection)
        finally:
            connection.terminate()  # without waiting: the server may be gone


def _read_move(row: "asyncpg.Record") -> StoreMove:
    progress: dict[str, list[int]] = orjson.loads(row["progress"])
    return StoreMove(
        id=row["id"],
        directory_id=row["directory_id"],
        finished_at=row["finished_at"],
        undone_at=row["undone_at"],
        progress={name: (last, rows) for name, (last, rows) in progress.items()},
    )


# Copies the tables of an embedded store to PostgreSQL in small transactions, and compares them.


MAX_ROWS = 1_000  # of one transaction
_MAX_BYTES = 8_000_000

# The step, and how many rows of how many are done.
OnStep = Callable[[str, int, int], None]


class RowsDiffer(Unavailable):
    code = "moved_rows_differ"


async def copy_tables(
    connection: apsw.Connection, target: Target, move: StoreMove, tables: Sequence[Table], on_step: OnStep
) -> None:
    """Copy every row that the target does not have yet."""
    total = sum(table.rows for table in tables)
    for table in tables:
        last, _ = move.progress.get(table.name, (-(2**63), 0))
        batch: list[Values] = []
        size = 0
        for row_id, values in read_rows(connection, table, last):
            batch.append(values)
            size += sum(len(value) for value in values if isinstance(value, str | bytes))
            if len(batch) == MAX_ROWS or size >= _MAX_BYTES:
                move = await target.add(move, table, batch, row_id)
                batch, size = [], 0
                _report(on_step, table, move, total)
            last = row_id
        if batch:
            move = await target.add(move, table, batch, last)
            _report(on_step, table, move, total)


async def compare_tables(connection: apsw.Connection, target: Target, tables: Sequence[Table], on_step: OnStep) -> None:
    """Compare every row of every table on both sides, and raise at the first that differs."""
    done, total = 0, sum(table.rows for table in tables)
    for table in tables:
        await _compare(connection, target, table)
        done += table.rows
        on_step(f"compared {table.name}", done, total)


async def _compare(connection: apsw.Connection, target: Target, table: Table) -> None:
    mine = read_sorted(connection, table)
    async for theirs in target.read_sorted(table):
        row = next(mine, None)
        if row != theirs:
            raise _differ(table, row or theirs)
    row = next(mine, None)
    if row is not None:
        raise _differ(table, row)


def _differ(table: Table, row: Values) -> RowsDiffer:
    values = dict(zip(table.columns, row, strict=True))
    # A key that is not a single id may be the row's text.
    where = f" with {table.key[0]} {values[table.key[0]]!r}" if len(table.key) == 1 else ""
    return RowsDiffer(
        f"A row of the table {table.name}{where} is not the same in PostgreSQL as in the embedded store. The move is "
        "not finished, and no server starts on either. Undo it with `wakeful move --undo`, and move to another, empty "
        "database."
    )


def _report(on_step: OnStep, table: Table, move: StoreMove, total: int) -> None:
    on_step(f"copied {table.name}", sum(rows for _, rows in move.progress.values()), total)
