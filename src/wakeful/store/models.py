"""Models, their tests and the default one in the store."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import asyncpg
import orjson

from wakeful.core.events import ModelsChanged
from wakeful.core.records import Model, ModelTest
from wakeful.store.drivers.database import Statements
from wakeful.store.drivers.sqlite import SqliteDatabase, size_of
from wakeful.store.rows import MODEL_TESTS, MODELS


class ModelRows:
    """Statements about models, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def all(self) -> list[Model]:
        return MODELS.read_all(await self._statements.fetch("models", {}))

    async def find(self, name: str) -> Model | None:
        return MODELS.read_first(await self._statements.fetch("model", {"name": name}))

    async def lock(self, name: str) -> Model | None:
        """Read a model in order to change it."""
        return MODELS.read_first(await self._statements.fetch("lock_model", {"name": name}))

    async def add(self, model: Model) -> bool:
        """Add a model. False if the name is taken."""
        is_added = bool(await self._statements.fetch("add_model", MODELS.write(model)))
        if is_added:
            self._announce()
        return is_added

    async def save(self, model: Model) -> None:
        await self._statements.fetch("save_model", MODELS.write(model))
        self._announce()

    async def delete(self, name: str) -> bool:
        is_deleted = bool(await self._statements.fetch("delete_model", {"name": name}))
        if is_deleted:
            await self._statements.fetch("delete_model_test", {"name": name})
            self._announce()
        return is_deleted

    async def agents_by_model(self) -> dict[str, list[str]]:
        """Return, by model, the agents that use it or allow it to their schedules, with the names of their users."""
        found: dict[str, list[str]] = {}
        for row in await self._statements.fetch("agents_with_models", {}):
            for model in {row["model"], *orjson.loads(row["allowed_models"])} - {None}:
                found.setdefault(model, []).append(f"{row['name']} ({row['user_name']})")
        return found

    async def tests(self) -> list[ModelTest]:
        return MODEL_TESTS.read_all(await self._statements.fetch("model_tests", {}))

    async def save_test(self, test: ModelTest) -> None:
        await self._statements.fetch("save_model_test", MODEL_TESTS.write(test))
        self._announce()

    async def default(self) -> str | None:
        rows = await self._statements.fetch("default_model", {})
        return rows[0]["model"] if rows else None

    async def save_default(self, model: str | None) -> None:
        """Choose the model of agents without one of their own; None: that of the settings."""
        if model is None:
            await self._statements.fetch("delete_default_model", {})
        else:
            await self._statements.fetch("save_default_model", {"model": model})
        self._announce()

    def _announce(self) -> None:
        self._statements.news.append(ModelsChanged())


# Replace the encrypted keys in a store that no server uses, while the device key is rotated.


# apsw's own types for rows are incomplete.
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
