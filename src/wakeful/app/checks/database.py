"""Checks of the store: whether it opens, and its schema. It is opened only to read."""
# apsw's types name collections.abc.Buffer, which Python 3.11 does not have, so its methods count as partly unknown.
# pyright: reportUnknownMemberType=false

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import asyncpg

from wakeful.agentdb.keys.keys import has_device_key
from wakeful.app.checks.check import Check, skipped, warning, wrong
from wakeful.app.data.earlier_data import STORE_FILE, check_empty_store, check_not_moved, is_first_start
from wakeful.app.data.files import device_key_of
from wakeful.config import Settings
from wakeful.domain.errors import WakefulError
from wakeful.store.drivers.sqlite import size_of
from wakeful.store.migrate import load_migrations

REWIND_DAYS = 7
_CONNECT_SECONDS = 10.0
_LAST_REWIND = (
    "SELECT to_timestamp(MAX(created_at) / 1e6) AT TIME ZONE 'UTC' FROM notifications WHERE code = 'store_rewound'"
    " AND created_at > (extract(epoch FROM now()) - $1) * 1e6"
)
_BACKUPS = {
    "sqlite": "After a copy, which it makes by itself",
    "postgres": "After a backup, which you make with `pg_dump`",
}


def check_database(settings: Settings, *, is_running: bool, is_quick: bool) -> Check:
    """Check that the store can be opened and has the schema of this version."""
    if settings.database_url is not None:
        return asyncio.run(_check_postgres(settings.database_url.get_secret_value()))
    if is_running:
        return Check(name="database", found=f"{settings.data_dir / STORE_FILE}, open by the running server")
    if is_first_start(settings):
        return Check(name="database", found="created at the first start")
    path = settings.data_dir / STORE_FILE
    try:
        check_not_moved(settings)
        if not size_of(path):
            check_empty_store(settings)
            return Check(name="database", found="created at the first start")
    except WakefulError as error:
        found, _, advice = error.message.partition(". ")
        return wrong("database", found, advice)
    if settings.device_key is None and not has_device_key(settings.config_dir):
        return skipped("database", "cannot be opened without the device key")
    return _check_sqlite(settings, path, is_quick)


def _check_sqlite(settings: Settings, path: Path, is_quick: bool) -> Check:
    connection: Any = None
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        if settings.store_encryption:
            connection.pragma("cipher", "aegis")
            connection.execute(f"PRAGMA key = 'raw:{device_key_of(settings).hex()}'")
        applied = {row[0] for row in connection.execute("SELECT number FROM migrations")}
        damage = "ok" if is_quick else str(connection.pragma("quick_check"))
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError) as error:
        return wrong(
            "database",
            f"{path} cannot be opened: {error}",
            f"Make it and {settings.data_dir} readable and writable for this user, and mount its disk for writing.",
        )
    except (apsw.Error, WakefulError) as error:
        return wrong(
            "database",
            f"{path} cannot be read: {error}",
            "It is damaged, or encrypted with another device key. Restore the key (`wakeful key restore`) or the store "
            f"from a backup; copies made before upgrades are in {settings.data_dir / 'backups'}.",
        )
    finally:
        if connection is not None:
            connection.close()
    if damage != "ok":
        return wrong("database", f"{path} is damaged: {damage[:200]}", "Stop using it, and restore a backup.")
    return _compare(applied, "sqlite", f"SQLite, {path}")


def ask_time(settings: Settings) -> tuple[str, datetime | None] | None:
    """Return the time of PostgreSQL, if the store is there."""

    async def read(url: str) -> datetime | None:
        try:
            connection = await asyncpg.connect(url, timeout=_CONNECT_SECONDS)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
            return None  # which the check of the database reports
        try:
            return await connection.fetchval("SELECT clock_timestamp()")
        finally:
            await connection.close()

    url = settings.database_url
    return None if url is None else ("PostgreSQL", asyncio.run(read(url.get_secret_value())))


async def _check_postgres(url: str) -> Check:
    try:
        connection = await asyncpg.connect(url, timeout=_CONNECT_SECONDS)
    except asyncpg.InvalidAuthorizationSpecificationError as error:
        return wrong(
            "database",
            f"PostgreSQL refuses the user or the password: {error}",
            "Correct the user and the password in WAKEFUL_DATABASE_URL (database_url); `psql URL` tries them.",
        )
    except asyncpg.InvalidCatalogNameError as error:
        return wrong(
            "database",
            f"PostgreSQL answers, but {error}",
            "Create it (`createdb NAME`), or correct the name at the end of WAKEFUL_DATABASE_URL (database_url).",
        )
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError) as error:
        return wrong(
            "database",
            f"PostgreSQL does not answer: {str(error) or type(error).__name__}",
            "See that it runs, can be reached from here, and has the address in WAKEFUL_DATABASE_URL (database_url).",
        )
    try:
        server = await connection.fetchval("SHOW server_version")
        if await connection.fetchval("SELECT to_regclass('migrations')") is None:
            return Check(name="database", found=f"PostgreSQL {server}, empty; set up at the first start")
        applied = {row["number"] for row in await connection.fetch("SELECT number FROM migrations")}
        rewound = await connection.fetchval(_LAST_REWIND, REWIND_DAYS * 86_400)
    finally:
        await connection.close()
    found = _compare(applied, "postgres", f"PostgreSQL {server}")
    if found.status != "ok" or rewound is None:
        return found
    return warning(
        "database",
        f"{found.found}; it was taken back to an earlier state, noticed at {rewound:%Y-%m-%d %H:%M} UTC",
        "What was written after that state is lost. Look at what agents were doing then, and set up synchronous "
        f"replication, so that a promotion loses nothing. This line goes after {REWIND_DAYS} days.",
    )


def _compare(applied: set[int], dialect: str, found: str) -> Check:
    known = {each.number for each in load_migrations(dialect)}
    if applied - known:
        return wrong(
            "database",
            f"its schema ({max(applied)}) is newer than this version knows ({max(known)})",
            "Install the version of Wakeful that was used last, or a newer one.",
        )
    if missing := known - applied:
        return wrong(
            "database",
            f"its schema is old: {len(missing)} of {len(known)} migrations are missing",
            f"{_BACKUPS[dialect]}, `wakeful migrate` or the start of the server brings it up to date.",
        )
    return Check(name="database", found=f"{found}, schema {max(known)}")
