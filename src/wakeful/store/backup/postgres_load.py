"""Fills a PostgreSQL database from a backup, in one transaction: it is there whole, or not at all."""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import asyncpg
import orjson

from wakeful.domain.errors import Conflict
from wakeful.store.backup.postgres_snapshot import CopiedTable
from wakeful.store.drivers.postgres import PostgresStatements
from wakeful.store.drivers.postgres_errors import errors_named
from wakeful.store.drivers.postgres_limits import UNLIMITED
from wakeful.store.migrate import RECORD, load_migrations
from wakeful.store.moving.target import INDEX_LATER, USED
from wakeful.store.store import Tx

T = TypeVar("T")

_LOCK = 0x77616B72  # one restore at a time
_LONG_SECONDS = 86_400.0
_TABLE = re.compile(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)")


class RestoreTargetInUse(Conflict):
    code = "restore_target_in_use"


class PostgresLoad:
    """One transaction that replaces everything in a database."""

    def __init__(self, connection: "asyncpg.Connection[Any]", now: int) -> None:
        self._connection = connection
        self._now = now
        self._migrations = load_migrations("postgres")

    @property
    def newest(self) -> int:
        """Return the number of the last migration that this version knows."""
        return max(migration.number for migration in self._migrations)

    async def is_used(self) -> bool:
        """Return whether somebody has worked with this database."""
        with errors_named():
            for name in USED:
                is_there = await self._connection.fetchval("SELECT to_regclass($1) IS NOT NULL", name)
                if is_there and await self._connection.fetchval(f"SELECT EXISTS (SELECT 1 FROM {name})"):
                    return True
        return False

    async def refuse_nodes(self, lease_seconds: float) -> None:
        """Raise if a server runs on this database."""
        with errors_named():
            if not await self._connection.fetchval("SELECT to_regclass('nodes') IS NOT NULL"):
                return
            since = self._now - int(lease_seconds * 1_000_000)
            if await self._connection.fetchval("SELECT COUNT(*) FROM nodes WHERE seen_at > $1", since):
                raise RestoreTargetInUse(
                    "A server runs on this PostgreSQL database. Nothing was changed. Stop all of them first; one that "
                    f"was killed counts as running for {lease_seconds:.0f} seconds."
                )

    async def create(self, schema: int) -> None:
        """Drop our tables, and create them as they were in a version with some migration as its last."""
        names = dict.fromkeys(name for migration in self._migrations for name in _TABLE.findall(migration.script))
        await self._run(f"DROP TABLE IF EXISTS migrations, {', '.join(names)} CASCADE")
        await self._run(RECORD)
        for migration in self._migrations:
            if migration.number <= schema:
                await self._run(migration.recorded(self._now))

    async def empty(self, tables: Sequence[CopiedTable]) -> None:
        """Delete the rows that migrations have made."""
        for table in reversed(tables):
            await self._run(f"DELETE FROM {table.name}")

    async def add(self, table: CopiedTable, pieces: AsyncIterator[bytes]) -> None:
        """Add the rows of a table."""
        with errors_named():
            await self._connection.copy_to_table(
                table.name, source=pieces, columns=list(table.columns), format="binary", timeout=_LONG_SECONDS
            )

    async def upgrade(self, schema: int) -> None:
        """Bring the schema up to date, and have the search index built by the next start."""
        for migration in self._migrations:
            if migration.number > schema:
                await self._run(migration.recorded(self._now))
        await self._run(INDEX_LATER)

    async def carry_out(self, work: Callable[[Tx], Coroutine[Any, Any, T]]) -> T:
        """Do work as a part of this transaction. No server is there to hear its news."""
        with errors_named():
            return await Tx.carry_out(work, PostgresStatements(self._connection, _LONG_SECONDS))

    async def commit(self) -> None:
        with errors_named(may_be_done=True):
            await self._connection.execute("COMMIT")
        with errors_named():
            await self._connection.execute("ANALYZE")

    async def _run(self, script: str) -> None:
        with errors_named():
            await self._connection.execute(script, timeout=_LONG_SECONDS)


def read_tables(data: bytes) -> list[CopiedTable]:
    """Return the tables that a backup describes; their names are those of our migrations."""
    known = {name for migration in load_migrations("postgres") for name in _TABLE.findall(migration.script)}
    tables = [CopiedTable(name=each["name"], columns=tuple(each["columns"])) for each in orjson.loads(data)]
    for table in tables:
        if table.name not in known or not all(re.fullmatch(r"\w+", column) for column in table.columns):
            raise ValueError(f"there is no table {table.name!r}")
    return tables


@asynccontextmanager
async def open_load(url: str) -> AsyncGenerator[PostgresLoad]:
    """Connect, and begin the transaction; unless it is committed, nothing changes."""
    with errors_named():
        connection: asyncpg.Connection[Any] = await asyncpg.connect(url, timeout=30)
    try:
        with errors_named():
            await connection.execute(UNLIMITED)
            if not await connection.fetchval("SELECT pg_try_advisory_lock($1)", _LOCK):
                raise RestoreTargetInUse("Another restore to this PostgreSQL database is running.")
            now = await connection.fetchval("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)")
            await connection.execute("BEGIN")
        yield PostgresLoad(connection, now)
    finally:
        connection.terminate()  # without waiting: the server may be gone
