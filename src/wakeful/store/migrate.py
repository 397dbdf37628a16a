"""Numbered migrations: `NNNN_name.sql` for both databases, `NNNN_name.sqlite.sql` or `.postgres.sql` for one."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from wakeful.store.drivers.database import Database, Statements
from wakeful.store.drivers.sqlite import SqliteDatabase
from wakeful.store.errors import StoreIsNewer

log = logging.getLogger(__name__)

CopyFirst = Callable[[int], Awaitable[None]]

RECORD = """
CREATE TABLE IF NOT EXISTS migrations (number BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step of the schema."""

    number: int
    name: str
    script: str

    def recorded(self, now: int) -> str:
        """Return the script with its record: a crash in between leaves neither."""
        return (
            f"{self.script}\n;INSERT INTO migrations (number, name, applied_at) "
            f"VALUES ({self.number}, '{self.name}', {now})"
        )


def load_migrations(dialect: str, folder: Traversable | None = None) -> list[Migration]:
    """Return the migrations of one dialect, in order."""
    folder = folder or resources.files("wakeful.store").joinpath("sql", "migrations")
    found: list[Migration] = []
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        stem, *qualifier = file.name.removesuffix(".sql").split(".")
        if qualifier and qualifier != [dialect]:
            continue
        number, _, name = stem.partition("_")
        found.append(Migration(number=int(number), name=name, script=file.read_text(encoding="utf-8")))
    return found


async def migrate(
    database: Database, migrations: Sequence[Migration], now: int, copy_first: CopyFirst | None = None
) -> list[Migration]:
    """Bring the schema up to date and return what was applied.

    Refuses a schema newer than it knows. `copy_first` is called with the number of the last migration before one that
    holds data is changed, and may raise. Without it, a SQLite store is copied to `backups/`.
    """
    async with database.only_one_node():
        return await _migrate(database, migrations, now, copy_first)


async def _migrate(
    database: Database, migrations: Sequence[Migration], now: int, copy_first: CopyFirst | None
) -> list[Migration]:
    await database.run_script(RECORD)
    applied = await database.read(_read_applied)
    newest = max((m.number for m in migrations), default=0)
    if applied and max(applied) > newest:
        raise StoreIsNewer(max(applied), newest)
    missing = [m for m in migrations if m.number not in applied]
    if missing and applied and copy_first is not None:
        await copy_first(max(applied))
    elif missing and applied and isinstance(database, SqliteDatabase):
        copy = _backup_path(database.path, max(applied), now)
        await database.copy_to(copy)
        log.info("store copied before migrating", extra={"path": str(copy)})
    for migration in missing:
        await database.run_script(migration.recorded(now))
        log.debug("migration applied", extra={"number": migration.number, "migration": migration.name})
    if missing and isinstance(database, SqliteDatabase):
        await database.enable_vacuum()
    if missing:
        before, after = max(applied, default=0), missing[-1].number
        log.info("schema migrated", extra={"from": before, "to": after, "migrations": len(missing)})
    return missing


async def _read_applied(statements: Statements) -> set[int]:
    return {row["number"] for row in await statements.fetch("applied_migrations", {})}


def _backup_path(store: Path, number: int, now: int) -> Path:
    return store.parent / "backups" / f"{store.stem}-schema{number}-{now}.sqlite"
