"""Models: add, change, list, test and remove them. Owners only."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from wakeful.core.clock import Clock
from wakeful.core.errors import Unavailable, WakefulError
from wakeful.core.identity import Identity, check_fresh, check_owner
from wakeful.core.records import Abilities, Model, ModelTest
from wakeful.models import lists, rules
from wakeful.models.by_name import Models
from wakeful.models.catalog import ModelCatalog, decrypt_key, encrypt_key
from wakeful.models.lists import discover
from wakeful.models.names import check_written, provider_of
from wakeful.models.providers import Provider, check_address
from wakeful.models.rules import FoundServer, ListedModel, ModelNotListed, ModelTrial
from wakeful.models.trials import ModelTests
from wakeful.store.store import Store, Tx

T = TypeVar("T")

_FACTS = ("context_window", "output_limit", "input_price", "output_price", "images", "thinking")


class ModelUnchecked(Unavailable):
    """A model was not saved, because its endpoint could not be asked about it."""

    code = "model_unchecked"

    def __init__(self, error: WakefulError) -> None:
        super().__init__(
            f"{error.message} Nothing was saved. To save it without this check, use `--no-check` (`check: false`).",
            field=error.field,
        )


class ModelService:
    """Manages the models that owners add. A key goes to the store encrypted, and to its own endpoint, nowhere else."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        device_key: bytes,
        catalog: ModelCatalog,
        models: Models,
        tests: ModelTests,
        local_ports: Sequence[int],
    ) -> None:
        self._store = store
        self._clock = clock
        self._device_key = device_key
        self.catalog = catalog
        self._models = models
        self._tests = tests
        self._local_ports = local_ports  # of this machine, where local models are looked for

    async def all(self, caller: Identity) -> list[Model]:
        check_owner(caller)
        await self.catalog.refresh()
        return self.catalog.all()

    async def get(self, caller: Identity, name: str) -> Model:
        check_owner(caller)
        await self.catalog.refresh()
        found = self.catalog.find(name)
        if found is None:
            raise rules.ModelNotFound(name, self.catalog.names)
        return found

    async def add(
        self, caller: Identity, asked: Mapping[str, Any], *, key: str | None, is_checked: bool, is_default: bool
    ) -> Model:
        """Add a model. Unless told otherwise, its endpoint is asked whether it has the model, and for its limits."""
        self._check_may_change(caller)
        now = self._clock.now()
        provider = provider_of(asked["provider"])
        await self.catalog.refresh()
        given: dict[str, Any] = {
            **asked,
            "name": asked.get("name") or rules.suggest_name(asked["model"], self.catalog.names),
            "address": check_address(provider, asked.get("address")),
        }
        model = Model(**given, created_at=now, updated_at=now)
        self._refuse_setting(model.name)
        model = self._with_key(model, key)
        rules.check(model)
        self._check_has_key(provider, model)
        if is_checked:
            model = await self._with_facts(model, key)

        async def work(tx: Tx) -> Model:
            if len(await tx.models.all()) >= rules.MAX_MODELS:
                raise rules.TooManyModels
            if not await tx.models.add(model):
                raise rules.ModelNameTaken(model.name)
            if is_default:
                self._refuse_default_of_settings()
                await tx.models.save_default(model.name)
            return model

        return await self._write(work)

    async def change(
        self, caller: Identity, name: str, changes: Mapping[str, Any], *, key: str | None, is_checked: bool
    ) -> Model:
        """Change a model. Another provider or address drops its key, unless a new one is given."""
        self._check_may_change(caller)
        now = self._clock.now()
        self._refuse_setting(name)
        before = await self._store.read(lambda tx: tx.models.find(name))
        after = self._changed(before, name, changes, key, now)
        is_usable = after.key is not None or not provider_of(after.provider).needs_key
        if is_checked and is_usable and {"provider", "model", "address"} & changes.keys():
            after = await self._with_facts(after, decrypt_key(self._device_key, after))

        async def work(tx: Tx) -> Model:
            if await tx.models.lock(name) != before:  # someone else changed it meanwhile: their change counts too
                raise rules.ModelChangedMeanwhile(name)
            await tx.models.save(after)
            return after

        return await self._write(work)

    async def remove(self, caller: Identity, name: str, *, is_forced: bool) -> None:
        """Remove a model, unless agents use it. With `is_forced` their runs fail, and say why."""
        self._check_may_change(caller)
        self._refuse_setting(name)
        default = self.catalog.default

        async def work(tx: Tx) -> None:
            used_by = (await tx.models.agents_by_model()).get(name, [])
            if default == name:
                used_by.append("every agent without a model of its own (it is the default)")
            if used_by and not is_forced:
                raise rules.ModelInUse(name, used_by)
            if not await tx.models.delete(name):
                raise rules.ModelNotFound(name, [model.name for model in await tx.models.all()])

        await self._write(work)

    async def choose_default(self, caller: Identity, model: str | None) -> str:
        """Choose the model of agents without one of their own; None: that of the settings, else the demo model."""
        self._check_may_change(caller)
        self._refuse_default_of_settings()
        await self.catalog.refresh()
        if model is not None:
            check_written(model, self.catalog.names)
        await self._write(lambda tx: tx.models.save_default(model))
        return self.catalog.default

    async def list_models(
        self, caller: Identity, *, name: str | None, provider: str | None, address: str | None, key: str | None
    ) -> list[ListedModel]:
        """Ask an endpoint for its models: that of an added model, or one that is about to be added."""
        self._check_may_change(caller)
        if name is not None:
            model = await self.get(caller, name)
            own = self.catalog.key_of(model)
            return await lists.list_models(provider_of(model.provider), model.address, own)
        asked = provider_of(provider or "")
        checked = check_address(asked, address)
        return await lists.list_models(asked, checked, None if key is None else rules.check_key(key))

    async def discover(self, caller: Identity) -> list[FoundServer]:
        """Look for servers of local models on this machine. Nothing that is found is used."""
        check_owner(caller)
        return await discover(self._local_ports)

    async def test(self, caller: Identity, model: str | None) -> ModelTrial:
        """Test a model by the name that agents write; None: the default."""
        check_owner(caller)
        await self.catalog.refresh()
        return await self.test_of_agent(model)

    async def test_of_agent(self, model: str | None) -> ModelTrial:
        """Test the model of an agent, and save how it called a tool. The route has checked whose agent it is."""
        name = model or self.catalog.default
        trial = await self._tests.test(name)
        if trial.tool_calls is not None and trial.subject is not None:
            now = self._clock.now()
            test = ModelTest(name=name, subject=trial.subject, tool_calls=trial.tool_calls, tested_at=now)
            await self._write(lambda tx: tx.models.save_test(test))
        return trial

    async def agents_by_model(self) -> dict[str, list[str]]:
        """Return the agents that name a model, of all users, by model. The route has checked that an owner asks."""
        return await self._store.read(lambda tx: tx.models.agents_by_model())

    async def abilities(self, name: str) -> Abilities:
        """Return the limits and abilities that runs with this model use."""
        await self._models.prepare(name)  # a local one is asked for its window
        return self._models.abilities(name)

    async def _write(self, work: Callable[[Tx], Coroutine[Any, Any, T]]) -> T:
        result = await self._store.write(work)
        await self.catalog.refresh()  # here at once; other nodes hear the news
        return result

    def _check_may_change(self, caller: Identity) -> None:
        check_owner(caller)
        check_fresh(caller, self._clock.now())

    def _refuse_setting(self, name: str) -> None:
        if name in self.catalog.from_settings:
            raise rules.ModelFromSettings(name)

    def _refuse_default_of_settings(self) -> None:
        if self.catalog.default_source == "settings":
            raise rules.DefaultFromSettings(self.catalog.default)

    def _with_key(self, model: Model, key: str | None) -> Model:
        if key is None:
            return replace(model, key=None)
        encrypted = encrypt_key(self._device_key, rules.check_key(key), model.provider, model.address)
        return replace(model, key=encrypted)

    def _changed(
        self, before: Model | None, name: str, changes: Mapping[str, Any], key: str | None, now: datetime
    ) -> Model:
        if before is None:
            raise rules.ModelNotFound(name, self.catalog.names)
        after = replace(before, **changes, updated_at=now)
        provider = provider_of(after.provider)
        is_elsewhere = after.provider != before.provider
        after = replace(
            after, address=check_address(provider, None if is_elsewhere and "address" not in changes else after.address)
        )
        if key is not None:
            after = self._with_key(after, key)
        elif is_elsewhere or after.address != before.address:
            after = replace(after, key=None)
        rules.check(after)
        return after

    @staticmethod
    def _check_has_key(provider: Provider, model: Model) -> None:
        if provider.needs_key and model.key is None:
            raise rules.KeyNeeded(provider)

    async def _with_facts(self, model: Model, key: str | None) -> Model:
        """Return a model with the limits that its endpoint states, where the owner gave none."""
        try:
            found = await lists.inspect(provider_of(model.provider), model.address, key, model.model)
        except ModelNotListed:
            raise
        except WakefulError as error:
            raise ModelUnchecked(error) from error
        # A local server may be started with another window, so that is asked for at each run instead.
        left_out = ("context_window",) if provider_of(model.provider).is_local else ()
        facts = {name: getattr(found, name) for name in _FACTS if getattr(model, name) is None and name not in left_out}
        filled = replace(model, **facts)
        if filled.output_limit and filled.context_window and filled.output_limit >= filled.context_window:
            filled = replace(filled, output_limit=model.output_limit)
        rules.check(filled)
        return filled
