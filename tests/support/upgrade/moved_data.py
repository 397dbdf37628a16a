"""Moves of a copy of an embedded store to PostgreSQL, and what is on both sides."""

import asyncio
import os
import signal
from itertools import count
from typing import Any

import asyncpg

from forked_process import fork
from wakeful.config.settings import Settings
from wakeful.datadir.device_key import database_of
from wakeful.datadir.move import move_store
from wakeful.store import copying
from wakeful.store.copying import Target

# Tables that a move leaves out: PostgreSQL has its own, or makes them again.
NOT_MOVED = {"migrations", "store_sequence", "search_texts", "search_progress", "store_moves"} | {
    "nodes",
    "directories",
    "agent_directories",
    "homes",
    "home_pages",
    "home_files",
    "home_blobs",
}


def rows_in_sqlite(settings: Settings, *, file: str = "wakeful.sqlite") -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of every table but the search index, sorted."""
    database = database_of(settings.model_copy(update={"database_url": None}))
    database.path = settings.data_dir / file
    connection = database.connect()
    try:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        wanted = [name for name in names if name not in NOT_MOVED and not name.startswith(("sqlite_", "search_terms"))]
        return {name: _sorted(connection, name) for name in wanted}
    finally:
        connection.close()


def _sorted(connection: Any, name: str) -> list[tuple[Any, ...]]:
    columns = sorted(row[1] for row in connection.execute(f"PRAGMA table_info({name})"))
    return sorted(connection.execute(f"SELECT {', '.join(columns)} FROM {name}"), key=repr)


def rows_in_postgres(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of every table but the search index, sorted."""

    async def read() -> dict[str, list[tuple[Any, ...]]]:
        connection = await asyncpg.connect(url)
        try:
            found = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
            names = [row["tablename"] for row in found if row["tablename"] not in NOT_MOVED]
            return {
                name: sorted(
                    (
                        tuple(row[column] for column in sorted(row.keys()))
                        for row in await connection.fetch(f"SELECT * FROM {name}")
                    ),
                    key=repr,
                )
                for name in names
            }
        finally:
            await connection.close()

    return asyncio.run(read())


def execute(url: str, script: str) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(script)
        finally:
            await connection.close()

    asyncio.run(run())


def move_and_die_at(settings: dict[str, Any], url: str, step: str) -> int | None:
    """Move in a process that kills itself at a step; return how it ended."""
    process = fork(_move_and_die_at, settings, url, step)
    process.join(60)
    code = process.exitcode
    process.close()
    return code


def move_and_die_at_step(settings: dict[str, Any], url: str, number: int) -> int | None:
    """Move in a process that kills itself when its progress is reported for the nth time; return how it ended."""
    process = fork(_move_and_die_at_step, settings, url, number)
    process.join(60)
    code = process.exitcode
    process.close()
    return code


def _move_and_die_at_step(settings: dict[str, Any], url: str, number: int) -> None:
    copying.MAX_ROWS = 4
    steps = count()

    def die(*_: object) -> None:
        if next(steps) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(move_store(Settings.model_validate(settings), url, die))


def move_and_die(settings: dict[str, Any], url: str, rows: int, *, is_saved: bool) -> int | None:
    """Move in a process that kills itself at its first batch, or when that is done at its first comparison.

    `is_saved`: right after the batch is committed, else right before. Returns how it ended.
    """
    process = fork(_move_and_die, settings, url, rows, is_saved)
    process.join(60)
    code = process.exitcode
    process.close()
    return code


def _move_and_die(settings: dict[str, Any], url: str, rows: int, is_saved: bool) -> None:
    copying.MAX_ROWS = rows
    add_rows = Target.add

    async def add(self: Target, move: Any, table: Any, batch: Any, last: int) -> Any:
        if is_saved:
            await add_rows(self, move, table, batch, last)
        else:  # as many rows as the transaction gets to before its end
            transaction = self._connection.transaction()
            await transaction.start()
            await self._connection.copy_records_to_table(table.name, records=batch, columns=table.columns)
        os.kill(os.getpid(), signal.SIGKILL)

    Target.add = add  # type: ignore[method-assign]
    asyncio.run(move_store(Settings.model_validate(settings), url, lambda *_: None))


def _move_and_die_at(settings: dict[str, Any], url: str, step: str) -> None:
    copying.MAX_ROWS = 4

    def die(reached: str, _done: int, _total: int) -> None:
        if reached == step:
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(move_store(Settings.model_validate(settings), url, die))
