"""Numbered migrations: `NNNN_name.sql` for both databases, `NNNN_name.sqlite.sql` or `.postgres.sql` for one.

A number may have a file for both and one for each. The baseline, 38, is the schema of 0.2.0.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from importlib import resources
from importlib.resources.abc import Traversable

from wakeful.store.drivers.database import Database, Statements
from wakeful.store.drivers.sqlite import SqliteDatabase
from wakeful.store.errors import FilesNotInHomes, OlderNodesRunning, StoreIsNewer, StoreIsOlder

log = logging.getLogger(__name__)

BASELINE = 38
OLDEST = {"sqlite": 37, "postgres": 38}  # the last migrations of 0.2.0
LAST_OF_0_2 = 44
LEASE = timedelta(seconds=30)  # the default of the settings

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
    found: dict[int, Migration] = {}
    for file in sorted(folder.iterdir(), key=_place):
        stem, *qualifier = file.name.removesuffix(".sql").split(".")
        if qualifier and qualifier != [dialect]:
            continue
        digits, _, name = stem.partition("_")
        number, script = int(digits), file.read_text(encoding="utf-8")
        if number in found:
            script = f"{found[number].script}\n{script}"
        found[number] = Migration(number=number, name=name, script=script)
    return list(found.values())


def _place(file: Traversable) -> tuple[str, bool]:
    """Return what files are sorted by: their number, and the one for both databases first."""
    digits, _, name = file.name.partition("_")
    return digits, name.count(".") > 1


def with_baseline(applied: Collection[int], dialect: str) -> set[int]:
    """Return the applied migrations of a store, where the baseline stands for all up to 0.2.0."""
    if not applied:
        return set()
    if max(applied) < OLDEST[dialect]:
        raise StoreIsOlder(max(applied))
    return {BASELINE, *(number for number in applied if number > BASELINE)}


async def migrate(
    database: Database,
    migrations: Sequence[Migration],
    now: int,
    copy_first: CopyFirst | None = None,
    lease: timedelta = LEASE,
) -> list[Migration]:
    """Bring the schema up to date and return what was applied.

    Refuses a schema newer than it knows or older than 0.2.0, and one of 0.2 while its nodes run: they have renewed
    their rows within `lease`. `copy_first` is called with the number of the last migration before one that holds data
    is changed, and may raise. Without it, a SQLite store is copied to `backups/`.
    """
    async with database.only_one_node():
        await database.run_script(RECORD)
        applied = with_baseline(await database.read(_read_applied), database.dialect)
        newest = max((m.number for m in migrations), default=0)
        if applied and max(applied) > newest:
            raise StoreIsNewer(max(applied), newest)
        missing = [m for m in migrations if m.number not in applied]
        if missing and applied:
            await _refuse_0_2(database, max(applied), lease)
            await _copy(database, max(applied), now, copy_first)
        if missing:
            await _apply(database, missing, max(applied, default=0), now)
        return missing


async def _refuse_0_2(database: Database, last: int, lease: timedelta) -> None:
    """Raise if a node of 0.2 works on a shared store, or if that has files of 0.1 to move."""
    clock = await database.read_clock()
    if last > LAST_OF_0_2 or clock is None:  # only a shared store has a clock
        return
    since = clock - lease // timedelta(microseconds=1)
    nodes = await database.read(lambda statements: statements.fetch("live_nodes", {"since": since}))
    if nodes:
        raise OlderNodesRunning([row["name"] for row in nodes], lease)
    unmoved = await database.read(lambda statements: statements.fetch("agents_without_home", {}))
    if unmoved:
        raise FilesNotInHomes([(row["agent_id"], row["place"]) for row in unmoved])


async def _copy(database: Database, last: int, now: int, copy_first: CopyFirst | None) -> None:
    if copy_first is not None:
        await copy_first(last)
    elif isinstance(database, SqliteDatabase):
        copy = database.path.parent / "backups" / f"{database.path.stem}-schema{last}-{now}.sqlite"
        await database.copy_to(copy)
        log.info("store copied before migrating", extra={"path": str(copy)})


async def _apply(database: Database, missing: Sequence[Migration], last: int, now: int) -> None:
    for migration in missing:
        await database.run_script(migration.recorded(now))
        log.debug("migration applied", extra={"number": migration.number, "migration": migration.name})
    if isinstance(database, SqliteDatabase):
        await database.enable_vacuum()
    log.info("schema migrated", extra={"from": last, "to": missing[-1].number, "migrations": len(missing)})


async def _read_applied(statements: Statements) -> set[int]:
    return {row["number"] for row in await statements.fetch("applied_migrations", {})}
