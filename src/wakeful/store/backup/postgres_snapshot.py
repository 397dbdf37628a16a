"""All rows of a PostgreSQL store, read from one snapshot in PostgreSQL's own binary format."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

import asyncpg
import orjson

from wakeful.store.drivers.postgres_errors import errors_named
from wakeful.store.drivers.postgres_limits import UNLIMITED
from wakeful.store.moving.source import LEFT_OUT

_PIECE = 8 * 1024 * 1024  # bytes
_LONG_SECONDS = 86_400.0

_COLUMNS = """
SELECT c.table_name, c.column_name FROM information_schema.columns c
JOIN information_schema.tables t USING (table_schema, table_name)
WHERE
    c.table_schema = current_schema() AND t.table_type = 'BASE TABLE' AND c.is_generated = 'NEVER'
ORDER BY c.table_name, c.ordinal_position
"""

_REFERENCES = """
SELECT r.relname AS name, f.relname AS needs FROM pg_constraint k
JOIN pg_class r ON r.oid = k.conrelid JOIN pg_class f ON f.oid = k.confrelid
WHERE k.contype = 'f' AND k.connamespace = current_schema()::regnamespace AND r.oid <> f.oid
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedTable:
    """A table, with the columns in the order of its copy."""

    name: str
    columns: tuple[str, ...]


class PostgresSnapshot:
    """One moment of a store: every statement reads the same state."""

    def __init__(self, connection: "asyncpg.Connection[Any]", schema: int) -> None:
        self._connection = connection
        self.schema = schema  # the number of the last migration

    async def agents_elsewhere(self) -> list[str]:
        """Return the agents whose files are in the data directory of a node, and not in PostgreSQL yet."""
        with errors_named():
            if await self._connection.fetchval("SELECT to_regclass('agent_directories') IS NULL"):
                return []
            rows = await self._connection.fetch("SELECT agent_id FROM agent_directories ORDER BY agent_id")
        return [row["agent_id"] for row in rows]

    async def tables(self) -> list[CopiedTable]:
        """Return the tables to copy, each after those that it refers to."""
        columns: dict[str, list[str]] = {}
        with errors_named():
            found = await self._connection.fetch(_COLUMNS)
            references = await self._connection.fetch(_REFERENCES)
        for row in found:
            if row["table_name"] not in LEFT_OUT:
                columns.setdefault(row["table_name"], []).append(row["column_name"])
        needs: dict[str, set[str]] = {name: set() for name in columns}
        for row in references:
            if row["name"] in needs and row["needs"] in needs:
                needs[row["name"]].add(row["needs"])
        return [CopiedTable(name=name, columns=tuple(columns[name])) for name in _in_order(needs)]

    @staticmethod
    def describe(tables: Sequence[CopiedTable]) -> bytes:
        return orjson.dumps([asdict(table) for table in tables])

    async def rows(self, table: CopiedTable) -> AsyncGenerator[bytes]:
        """Yield the rows of a table in pieces of some megabytes."""
        waiting: asyncio.Queue[bytes | None] = asyncio.Queue(8)

        async def copy() -> None:
            try:
                await self._connection.copy_from_table(
                    table.name,
                    columns=list(table.columns),
                    output=waiting.put,
                    format="binary",
                    timeout=_LONG_SECONDS,
                )
            finally:
                await waiting.put(None)

        copying = asyncio.create_task(copy())
        parts: list[bytes] = []
        size = 0
        try:
            while (part := await waiting.get()) is not None:
                parts.append(part)
                size += len(part)
                if size >= _PIECE:
                    yield b"".join(parts)
                    parts, size = [], 0
            with errors_named():
                await copying
            yield b"".join(parts)
        finally:
            copying.cancel()
            with suppress(asyncio.CancelledError, asyncpg.PostgresError, OSError):
                await copying


@asynccontextmanager
async def open_snapshot(url: str) -> AsyncGenerator[PostgresSnapshot]:
    """Connect, and read everything in the block as it was at one moment."""
    with errors_named():
        connection: asyncpg.Connection[Any] = await asyncpg.connect(url, timeout=30)
    try:
        with errors_named():
            await connection.execute(UNLIMITED)
            await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            snapshot = PostgresSnapshot(connection, await _read_schema(connection))
        yield snapshot  # outside of the names for errors: a full disk of a backup is not PostgreSQL's
    finally:
        connection.terminate()  # it has changed nothing, and the server may be gone


async def _read_schema(connection: "asyncpg.Connection[Any]") -> int:
    """Return the number of the last migration."""
    return await connection.fetchval("SELECT COALESCE(MAX(number), 0) FROM migrations")


def _in_order(needs: dict[str, set[str]]) -> list[str]:
    ordered: list[str] = []
    while len(ordered) < len(needs):
        ready = sorted(name for name in needs if name not in ordered and needs[name] <= set(ordered))
        assert ready, needs
        ordered += ready
    return ordered
