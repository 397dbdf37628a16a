"""Replace the encrypted keys of models in a store that no server uses, while the device key is rotated."""

# apsw's own types for rows are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import asyncio
from collections.abc import Callable
from pathlib import Path

import asyncpg

from wakeful.store.drivers.sqlite import SqliteDatabase, size_of

Change = Callable[[str, str, str], str | None]  # provider, address and encrypted key to the new one; None: leave it

_READ = "SELECT name, provider, address, encrypted_key FROM models WHERE encrypted_key IS NOT NULL"


def change_keys(path: Path, store_key: bytes | None, change: Change) -> None:
    """Replace the keys in an embedded store, all or none."""
    if not size_of(path):
        return
    connection = SqliteDatabase(path, store_key).connect()
    try:
        with connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'models'").fetchall():
                return  # of a version without models
            for name, provider, address, encrypted in connection.execute(_READ).fetchall():
                new = change(str(provider), str(address), str(encrypted))
                if new is not None:
                    connection.execute("UPDATE models SET encrypted_key = ? WHERE name = ?", (new, name))
    finally:
        connection.close()


def change_keys_in_postgres(url: str, change: Change) -> None:
    """Replace the keys in PostgreSQL, all or none."""
    asyncio.run(_change_in_postgres(url, change))


async def _change_in_postgres(url: str, change: Change) -> None:
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            if await connection.fetchval("SELECT to_regclass('models')") is None:
                return
            for row in await connection.fetch(f"{_READ} FOR UPDATE"):
                new = change(row["provider"], row["address"], row["encrypted_key"])
                if new is not None:
                    update = "UPDATE models SET encrypted_key = $1 WHERE name = $2"
                    await connection.execute(update, new, row["name"])
    finally:
        await connection.close()
