"""The models of this node by name, in memory: those of the settings file, and those that were added.

A change on any node reaches the others as news; a node that missed it reads the table when it meets an unknown name,
and once a minute.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

from wakeful.core import device_key as core_device_key
from wakeful.core.errors import StoreUnavailable
from wakeful.core.events import LookAgain, ModelsChanged
from wakeful.core.records import Model, ModelTest, StoredToolCalls
from wakeful.models.names import DEMO, check_written
from wakeful.models.rules import ModelKeyUnreadable
from wakeful.notices.texts import make_notice
from wakeful.store.base import Job
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)
_KEY_PURPOSE = "wakeful model key 1"  # a key is bound to the provider and address that it was given for

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
        await tx.notices.add(make_notice("calls_as_text", owner, now, models=", ".join(models)))


def encrypt_key(device_key: bytes, key: str, provider: str, address: str) -> str:
    """Return a key encrypted as hexadecimal text; it decrypts only with the same provider and address."""
    return core_device_key.encrypt(device_key, key, (_KEY_PURPOSE, provider, address))


def decrypt_key(device_key: bytes, model: Model) -> str | None:
    """Return the key of a model that was added; None if it has none."""
    if model.key is None:
        return None
    key = core_device_key.decrypt(device_key, model.key, (_KEY_PURPOSE, model.provider, model.address))
    if key is None:
        raise ModelKeyUnreadable(model.name)
    return key


def rewrap_key(old: bytes, new: bytes, provider: str, address: str, encrypted: str) -> str | None:
    """Return a key encrypted with a new device key; None if it has that one already, or neither decrypts it."""
    return core_device_key.rewrap(old, new, encrypted, (_KEY_PURPOSE, provider, address))
