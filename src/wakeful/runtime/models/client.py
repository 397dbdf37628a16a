"""Requests to the endpoints of models that owners make: lists, tests, and a look at this machine."""

from collections.abc import Sequence

from wakeful.domain.models.lists import FoundServer, ListedModel
from wakeful.domain.models.models import Abilities
from wakeful.domain.models.providers import Provider
from wakeful.domain.models.trials import ModelTrial
from wakeful.runtime.models.check import ModelTests
from wakeful.runtime.models.lists import lists
from wakeful.runtime.models.lists.discover import discover
from wakeful.runtime.models.providers import Models


class ModelRequests:
    """The client of the service for models. Every address is checked when it is connected to."""

    def __init__(self, models: Models, tests: ModelTests, ports: Sequence[int]) -> None:
        self._models = models
        self._tests = tests
        self._ports = ports  # of this machine, where local models are looked for

    async def list_models(self, provider: Provider, address: str, key: str | None) -> list[ListedModel]:
        return await lists.list_models(provider, address, key)

    async def inspect(self, provider: Provider, address: str, key: str | None, model: str) -> ListedModel:
        return await lists.inspect(provider, address, key, model)

    async def discover(self) -> list[FoundServer]:
        return await discover(self._ports)

    async def test(self, name: str) -> ModelTrial:
        return await self._tests.test(name)

    async def abilities(self, name: str) -> Abilities:
        """Return the limits and abilities of a model; a local one is asked for its window."""
        await self._models.prepare(name)
        return self._models.abilities(name)
