"""Models, their tests and the default one in the store."""

import orjson

from wakeful.domain.models.models import Model, ModelTest
from wakeful.domain.news import ModelsChanged
from wakeful.store.drivers.database import Statements
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
