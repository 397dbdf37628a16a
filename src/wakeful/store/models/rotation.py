"""Replace the encrypted keys in a store that no server uses, while the device key is rotated."""

# apsw's own types for rows are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import asyncpg

from wakeful.store.drivers.sqlite import SqliteDatabase, size_of

# By table, or table and column: the texts that a key is bound to, and the key, to the new one; None: leave it.
Changes = Mapping[str, Callable[..., str | None]]

_READ = {
    "models": "SELECT name, provider, address, encrypted_key FROM models WHERE encrypted_key IS NOT NULL",
    "push_key": "SELECT id, public_key, encrypted_key FROM push_key",
    "hooks secret": "SELECT id, id, encrypted_secret FROM hooks",
    "hooks old_secret": "SELECT id, id, encrypted_old_secret FROM hooks WHERE encrypted_old_secret IS NOT NULL",
    "webhooks secret": "SELECT id, id, encrypted_secret FROM webhooks",
    "webhooks old_secret": "SELECT id, id, encrypted_old_secret FROM webhooks WHERE encrypted_old_secret IS NOT NULL",
    "homes database_key": "SELECT agent_id, agent_id, database_key FROM homes WHERE database_key IS NOT NULL",
    "homes files_key": "SELECT agent_id, agent_id, files_key FROM homes WHERE files_key IS NOT NULL",
}
_SAVE = {
    "models": "UPDATE models SET encrypted_key = $1 WHERE name = $2",
    "push_key": "UPDATE push_key SET encrypted_key = $1 WHERE id = $2",
    "hooks secret": "UPDATE hooks SET encrypted_secret = $1 WHERE id = $2",
    "hooks old_secret": "UPDATE hooks SET encrypted_old_secret = $1 WHERE id = $2",
    "webhooks secret": "UPDATE webhooks SET encrypted_secret = $1 WHERE id = $2",
    "webhooks old_secret": "UPDATE webhooks SET encrypted_old_secret = $1 WHERE id = $2",
    "homes database_key": "UPDATE homes SET database_key = $1 WHERE agent_id = $2",
    "homes files_key": "UPDATE homes SET files_key = $1 WHERE agent_id = $2",
}


def change_keys(path: Path, store_key: bytes | None, changes: Changes) -> None:
    """Replace the keys in an embedded store, all or none."""
    if not size_of(path):
        return
    connection = SqliteDatabase(path, store_key).connect()
    try:
        with connection:
            for table, change in changes.items():
                if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (_table(table),)).fetchall():
                    continue  # of a version without it
                for row_id, *texts in connection.execute(_READ[table]).fetchall():
                    new = change(*map(str, texts))
                    if new is not None:
                        connection.execute(_SAVE[table], (new, row_id))
    finally:
        connection.close()


def change_keys_in_postgres(url: str, changes: Changes) -> None:
    """Replace the keys in PostgreSQL, all or none."""
    asyncio.run(_change_in_postgres(url, changes))


async def _change_in_postgres(url: str, changes: Changes) -> None:
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            for table, change in changes.items():
                if await connection.fetchval("SELECT to_regclass($1)", _table(table)) is None:
                    continue
                for row_id, *texts in await connection.fetch(f"{_READ[table]} FOR UPDATE"):
                    new = change(*texts)
                    if new is not None:
                        await connection.execute(_SAVE[table], new, row_id)
    finally:
        await connection.close()


def read_database_keys(url: str) -> list[tuple[str, str]]:
    """Return the agents with a database in PostgreSQL, with their key files."""
    return asyncio.run(_read_database_keys(url))


async def _read_database_keys(url: str) -> list[tuple[str, str]]:
    connection = await asyncpg.connect(url)
    try:
        if await connection.fetchval("SELECT to_regclass('homes')") is None:
            return []
        rows = await connection.fetch("SELECT agent_id, database_key FROM homes WHERE database_key IS NOT NULL")
        return [(row["agent_id"], row["database_key"]) for row in rows]
    finally:
        await connection.close()


def _table(name: str) -> str:
    return name.split(" ")[0]
