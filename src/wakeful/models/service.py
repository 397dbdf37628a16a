"""Models: add, change, list, test and remove them. Owners only."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, TypeVar

from wakeful.core import device_key as core_device_key
from wakeful.core.clock import Clock
from wakeful.core.errors import StoreUnavailable, Unavailable, WakefulError
from wakeful.core.events import LookAgain, ModelsChanged
from wakeful.core.identity import Identity, check_fresh, check_owner
from wakeful.core.jobs import Job
from wakeful.core.records import Abilities, Model, ModelTest, StoredToolCalls
from wakeful.models import rules
from wakeful.models.providers import Provider, check_address
from wakeful.models.rules import (
    DEMO,
    FoundServer,
    ListedModel,
    ModelKeyUnreadable,
    ModelNotListed,
    ModelTrial,
    check_written,
)
from wakeful.notices import texts as notices_texts
from wakeful.store.store import Store, Tx

# The models that can be used by name on this node, in memory: those of the settings file, and those that were added.
#
# A change on any node reaches the others as news; a node that missed it reads the table when it meets an unknown name,
# and once a minute.


log = logging.getLogger(__name__)

DefaultSource = Literal["settings", "chosen", "built_in"]


class ModelCatalog:
    """Models by name, their tests, and the default one."""

    def __init__(
        self, store: Store, device_key: bytes, from_settings: Mapping[str, Model], setting: str | None
    ) -> None:
        self._store = store
        self._device_key = device_key
        self.from_settings = dict(from_settings)
        self._setting = setting  # the default model, if the settings name one
        self._added: dict[str, Model] = {}
        self._tests: dict[str, ModelTest] = {}
        self._chosen: str | None = None
        self._refreshing: set[asyncio.Task[None]] = set()
        self._is_settled = False
        store.on(ModelsChanged, lambda _: self._refresh_soon())
        store.on(LookAgain, lambda _: self._refresh_soon())

    @property
    def default(self) -> str:
        """Return the model of agents without one of their own, as it is written."""
        return self._setting or self._chosen or DEMO

    @property
    def default_source(self) -> DefaultSource:
        return "settings" if self._setting else "chosen" if self._chosen else "built_in"

    @property
    def is_default_removed(self) -> bool:
        """Return whether the chosen default was the name of a model that does not exist any more."""
        is_name = self.default_source == "chosen" and self.default != DEMO and ":" not in self.default
        return is_name and self.find(self.default) is None

    @property
    def names(self) -> list[str]:
        return sorted({*self.from_settings, *self._added})

    @property
    def calls_as_text(self) -> list[str]:
        """Return the models that their owner, the settings file or their last test, by 0.2, has marked `text`."""
        marks = {name: test.tool_calls for name, test in self._tests.items()}
        marks |= {model.name: model.tool_calls for model in self.all() if model.tool_calls is not None}
        return sorted(name for name, mark in marks.items() if mark == "text")

    def all(self) -> list[Model]:
        return [model for name in self.names if (model := self.find(name)) is not None]

    def find(self, name: str) -> Model | None:
        """Return a model; one of the settings file hides an added one of the same name."""
        return self.from_settings.get(name) or self._added.get(name)

    def provider_string(self, name: str) -> str:
        """Return PROVIDER:MODEL of an added model; other names as they are."""
        model = self.find(name)
        return name if model is None else model.written

    def key_of(self, model: Model) -> str | None:
        """Return the key of a model, or raise ModelKeyUnreadable."""
        return model.key if model.source == "settings" else decrypt_key(self._device_key, model)

    def tested(self, name: str, subject: str) -> StoredToolCalls | None:
        """Return how a model called a tool in its last test; None if it has changed since."""
        test = self._tests.get(name)
        return test.tool_calls if test is not None and test.subject == subject else None

    def last_test(self, name: str) -> ModelTest | None:
        return self._tests.get(name)

    def jobs(self) -> Iterator[Job]:
        if self._store.is_shared:  # news of a change may have been lost
            yield Job(name="models", every=timedelta(minutes=1), run=self.refresh)

    async def refresh(self) -> None:
        """Read the models from the store."""

        async def work(tx: Tx) -> tuple[list[Model], list[ModelTest], str | None]:
            return await tx.models.all(), await tx.models.tests(), await tx.models.default()

        added, tests, self._chosen = await self._store.read(work)
        self._added = {model.name: model for model in added}
        self._tests = {test.name: test for test in tests}

    async def settle(self, now: datetime) -> None:
        """Read the models at the start; refuse a default that does not exist, and report marks that have no effect."""
        self._is_settled = True
        await self.refresh()
        if self._setting is not None:
            check_written(self._setting, self.names)
        for name in sorted(self._added.keys() & self.from_settings.keys()):
            log.warning("added model is hidden by one of the settings file", extra={"model": name})
        if models := self.calls_as_text:
            await self._store.write(lambda tx: _notify_owners(tx, models, now))

    async def aclose(self) -> None:
        for task in tuple(self._refreshing):
            task.cancel()
        await asyncio.gather(*self._refreshing, return_exceptions=True)

    def _refresh_soon(self) -> None:
        if not self._is_settled:  # PostgreSQL's first news comes before the tables are migrated
            return
        task = asyncio.ensure_future(self._refresh_quietly())
        self._refreshing.add(task)
        task.add_done_callback(self._refreshing.discard)

    async def _refresh_quietly(self) -> None:
        try:
            await self.refresh()
        except StoreUnavailable as error:  # it is read again at the next news
            log.warning("models not read", extra={"problem": error.message})


async def _notify_owners(tx: Tx, models: Sequence[str], now: datetime) -> None:
    for owner in await tx.accounts.hold_owners():
        await tx.notices.add(notices_texts.calls_as_text(owner, models, now))


T = TypeVar("T")

_FACTS = ("context_window", "output_limit", "input_price", "output_price", "images", "thinking")


class ModelClient(Protocol):
    """Requests to the endpoints of models."""

    async def list_models(self, provider: Provider, address: str, key: str | None) -> list[ListedModel]: ...
    async def inspect(self, provider: Provider, address: str, key: str | None, model: str) -> ListedModel: ...
    async def discover(self) -> list[FoundServer]: ...
    async def test(self, name: str) -> ModelTrial: ...
    async def abilities(self, name: str) -> Abilities: ...


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
        self, store: Store, clock: Clock, device_key: bytes, catalog: ModelCatalog, client: ModelClient
    ) -> None:
        self._store = store
        self._clock = clock
        self._device_key = device_key
        self.catalog = catalog
        self._client = client

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
        provider = rules.provider_of(asked["provider"])
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
        is_usable = after.key is not None or not rules.provider_of(after.provider).needs_key
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
            return await self._client.list_models(rules.provider_of(model.provider), model.address, own)
        asked = rules.provider_of(provider or "")
        checked = check_address(asked, address)
        return await self._client.list_models(asked, checked, None if key is None else rules.check_key(key))

    async def discover(self, caller: Identity) -> list[FoundServer]:
        """Look for servers of local models on this machine. Nothing that is found is used."""
        check_owner(caller)
        return await self._client.discover()

    async def test(self, caller: Identity, model: str | None) -> ModelTrial:
        """Test a model by the name that agents write; None: the default."""
        check_owner(caller)
        await self.catalog.refresh()
        return await self.test_of_agent(model)

    async def test_of_agent(self, model: str | None) -> ModelTrial:
        """Test the model of an agent, and save how it called a tool. The route has checked whose agent it is."""
        name = model or self.catalog.default
        trial = await self._client.test(name)
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
        return await self._client.abilities(name)

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
        provider = rules.provider_of(after.provider)
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
            found = await self._client.inspect(rules.provider_of(model.provider), model.address, key, model.model)
        except ModelNotListed:
            raise
        except WakefulError as error:
            raise ModelUnchecked(error) from error
        # A local server may be started with another window, so that is asked for at each run instead.
        left_out = ("context_window",) if rules.provider_of(model.provider).is_local else ()
        facts = {name: getattr(found, name) for name in _FACTS if getattr(model, name) is None and name not in left_out}
        filled = replace(model, **facts)
        if filled.output_limit and filled.context_window and filled.output_limit >= filled.context_window:
            filled = replace(filled, output_limit=model.output_limit)
        rules.check(filled)
        return filled


# Encrypt the keys of models with the device key, bound to the provider and address that they were given for.


_PURPOSE = "wakeful model key 1"


def encrypt_key(device_key: bytes, key: str, provider: str, address: str) -> str:
    """Return a key encrypted as hexadecimal text; it decrypts only with the same provider and address."""
    return core_device_key.encrypt(device_key, key, (_PURPOSE, provider, address))


def decrypt_key(device_key: bytes, model: Model) -> str | None:
    """Return the key of a model that was added; None if it has none."""
    if model.key is None:
        return None
    key = core_device_key.decrypt(device_key, model.key, (_PURPOSE, model.provider, model.address))
    if key is None:
        raise ModelKeyUnreadable(model.name)
    return key


def rewrap_key(old: bytes, new: bytes, provider: str, address: str, encrypted: str) -> str | None:
    """Return a key encrypted with a new device key; None if it has that one already, or neither decrypts it."""
    return core_device_key.rewrap(old, new, encrypted, (_PURPOSE, provider, address))
