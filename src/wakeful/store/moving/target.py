"""The PostgreSQL database that an embedded store is copied to."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg
import orjson

from wakeful.domain.errors import Conflict
from wakeful.store.drivers.postgres_errors import errors_named
from wakeful.store.moving.source import Table, Values

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
        return _read(rows[0]) if rows else None

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


def _read(row: "asyncpg.Record") -> StoreMove:
    progress: dict[str, list[int]] = orjson.loads(row["progress"])
    return StoreMove(
        id=row["id"],
        directory_id=row["directory_id"],
        finished_at=row["finished_at"],
        undone_at=row["undone_at"],
        progress={name: (last, rows) for name, (last, rows) in progress.items()},
    )
