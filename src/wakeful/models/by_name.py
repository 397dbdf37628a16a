"""Models by name: creating them, and their limits, abilities and prices.

The key of the settings is sent only to the provider it was set for, whatever model an agent names; an added model uses
its own key or none.
"""

import asyncio
import threading
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from genai_prices import calc_price
from genai_prices.data_snapshot import get_snapshot
from pydantic_ai.models import Model
from pydantic_ai.providers import Provider
from pydantic_ai.usage import RequestUsage

from wakeful.core.clock import Clock, SystemClock
from wakeful.core.errors import WakefulError
from wakeful.core.records import Abilities
from wakeful.models import library
from wakeful.models.addresses import is_private
from wakeful.models.catalog import ModelCatalog
from wakeful.models.demo import DemoModel
from wakeful.models.endpoint import Endpoint, origin_of
from wakeful.models.errors import translate
from wakeful.models.limits import largest_output, output_limit
from wakeful.models.lists import inspect_local
from wakeful.models.names import DEMO, DefaultModelRemoved, NoSuchModel, check_written
from wakeful.models.ollama import OllamaChat
from wakeful.models.openai_chat import ModelTimeouts, OpenAIChat
from wakeful.models.providers import CHAT, PROVIDERS
from wakeful.models.resolved import Place, place_of_added, place_of_string
from wakeful.models.rules import ListedModel, read_tool_calls

DEFAULT_WINDOW = 128_000
MAX_CACHED = 256
FACTS_LAST = 300.0  # seconds until a local server is asked again for the window of a model
FACTS_SECONDS = 5.0  # a run does not wait longer for them
OWN_WIRES = ("chat", "ollama")


@dataclass(frozen=True, slots=True)
class _Made:
    """A model, and what it was made from: if that changes, it is made again."""

    made_from: tuple[Place | None, Abilities]
    model: Model[Any]


class Models:
    """Every model that agents can name. Models are cached, and share their connections."""

    def __init__(
        self,
        default_model: str = DEMO,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        clock: Clock | None = None,
        patience: ModelTimeouts | None = None,
        window: int = DEFAULT_WINDOW,
        catalog: ModelCatalog | None = None,
    ) -> None:
        self._default = default_model
        self._base_url = base_url
        self._api_key = api_key
        self._clock = clock or SystemClock()
        self.patience = patience
        self._window = window
        self._catalog = catalog
        self._key_is_for = CHAT if default_model == DEMO and base_url else default_model.partition(":")[0]
        self._endpoints: dict[tuple[str, str | None, bool], Endpoint] = {}
        self._providers: dict[object, Provider[Any]] = {}
        self._models: dict[str, _Made] = {}
        self._facts: dict[str, tuple[float, ListedModel | None]] = {}  # of local models, by subject
        self._asking: dict[str, asyncio.Lock] = {}
        self._brought: dict[str, Model[Any]] = {}
        self._lock = threading.Lock()

    @property
    def default(self) -> str:
        return self._default if self._catalog is None else self._catalog.default

    async def prepare(self, name: str | None = None) -> None:
        """Read what is not known yet about a model: a name that is new here, and the window of a local one."""
        name = name or self.default
        if self._catalog is not None and ":" not in name and name != DEMO and self._catalog.find(name) is None:
            await self._catalog.refresh()
        try:
            place = self._place(name)
        except WakefulError:
            return  # `load` reports it
        if place is not None and _is_local(place) and not (place.added and place.added.context_window):
            async with self._asking.setdefault(place.subject, asyncio.Lock()):  # runs that begin together ask once
                await self._read_facts(place)

    async def load(self, name: str | None = None) -> Model[Any]:
        """Resolve a model in a thread: importing an SDK takes a second or more."""
        name = name or self.default
        if name in self._brought:
            return self._brought[name]
        known, place = self._models.get(name), self._place(name)
        if place is not None and place.is_checked and place.provider.wire == "bedrock":
            await library.check_connection(place)
        if known is not None and known.made_from == (place, self.abilities(name)):
            return known.model
        return await asyncio.to_thread(self.resolve, name)

    def resolve(self, name: str | None = None) -> Model[Any]:
        """Return the model of this name, or the default one; raise if something is missing."""
        name = name or self.default
        if name in self._brought:
            return self._brought[name]
        with self._lock:
            made_from = (self._place(name), self.abilities(name))
            known = self._models.get(name)
            if known is None or known.made_from != made_from:
                model = self._make(name, *made_from)
                while len(self._models) >= MAX_CACHED:
                    del self._models[next(iter(self._models))]
                known = self._models[name] = _Made(made_from, model)
            return known.model

    def use(self, name: str, model: Model[Any]) -> None:
        """Answer to a name with this model, as a program does that brings its own."""
        self._brought[name] = model

    def translate(self, error: BaseException, name: str | None = None) -> WakefulError | None:
        """Return our error for a model's exception, without keys; None if it is not about the model."""
        keys = {self._api_key or "", *(endpoint[1] or "" for endpoint in self._endpoints)}
        name = name or self.default
        try:
            place = self._place(name)
        except WakefulError:
            place = None
        return translate(error, name, hide=[*keys, (place and place.key) or ""])

    def place_of(self, name: str | None = None) -> str:
        """Return the origin of a model's URL; its name if the URL is not known."""
        name = name or self.default
        known = self._models.get(name)
        model = self._brought.get(name) or (known and known.model)
        return origin_of(model.base_url) if model is not None and model.base_url else name

    def provider_string(self, name: str) -> str:
        """Return PROVIDER:MODEL of an added model; other names as they are."""
        return name if self._catalog is None else self._catalog.provider_string(name)

    def subject(self, name: str) -> str:
        """Return what a test of this model is about."""
        place = self._place(name)
        return name if place is None else place.subject

    def is_local(self, name: str) -> bool:
        """Return whether a model runs on this machine or in a private network, where it may have to be loaded first."""
        place = self._place(name)
        return place is not None and _is_local(place)

    def context_window(self, name: str | None = None) -> int:
        """Return the context window in tokens; the default if it is not known."""
        return self.abilities(name).context_window

    def abilities(self, name: str | None = None) -> Abilities:
        """Return the limits and abilities of a model, as far as they are known."""
        name = name or self.default
        try:
            place = self._place(name)
        except WakefulError:
            place = None
        if place is None:
            known = self._known_window(name)
            window = known or self._window
            limit = output_limit if name in self._brought else largest_output
            output = limit(name.partition(":")[2], window)
            return Abilities(context_window=window, output_limit=output, is_window_known=bool(known))
        added, facts = place.added, self._facts.get(place.subject, (0.0, None))[1] or ListedModel(id=place.model)
        known = (added and added.context_window) or facts.context_window or self._known_window(name)
        window = known or self._window
        limit = output_limit if place.provider.wire in OWN_WIRES else largest_output
        output = (added and added.output_limit) or facts.output_limit or limit(place.model, window)
        tested = self._catalog.tested(name, place.subject) if self._catalog is not None else None
        return Abilities(
            context_window=window,
            output_limit=output,
            tool_calls=read_tool_calls((added and added.tool_calls) or tested or "native"),
            images=added.images if added is not None and added.images is not None else facts.images,
            thinking=added.thinking if added is not None and added.thinking is not None else facts.thinking,
            is_window_known=bool(known),
        )

    def price(self, name: str | None, usage: RequestUsage, *, at: datetime | None = None) -> int | None:
        """Return the cost in millionths of a dollar, or None if the price is unknown."""
        name = name or self.default
        if name == DEMO:
            return 0
        added = self._catalog.find(name) if self._catalog is not None else None
        if added is not None and added.input_price is not None and added.output_price is not None:
            return round(usage.input_tokens * added.input_price + usage.output_tokens * added.output_price)
        model, reference = self._reference(name)
        try:
            cost = calc_price(usage, model, genai_request_timestamp=at, **reference)
        except (LookupError, ValueError):
            return None
        return int((cost.total_price * 1_000_000).to_integral_value(ROUND_HALF_UP))

    async def aclose(self) -> None:
        for endpoint in self._endpoints.values():
            await endpoint.aclose()
        for provider in self._providers.values():
            async with provider:  # leaving it closes its connections
                pass
            library.close(provider)
        self._endpoints.clear()
        self._providers.clear()
        self._models.clear()

    def _place(self, name: str) -> Place | None:
        """Return where a model is; None for the demo model and for those that only pydantic-ai knows."""
        if name in self._brought:
            return None
        added = self._catalog.find(name) if self._catalog is not None else None
        if added is not None:
            assert self._catalog is not None
            return place_of_added(added, self._catalog.key_of(added))
        self._check_written(name)
        provider = PROVIDERS.get(name.partition(":")[0])
        if name == DEMO or provider is None or provider.wire not in OWN_WIRES:
            return None
        return place_of_string(name, chat_address=self._base_url, key=self._api_key, key_is_for=self._key_is_for)

    def _check_written(self, name: str) -> None:
        try:
            check_written(name, () if self._catalog is None else self._catalog.names)
        except NoSuchModel:
            if self._catalog is not None and self._catalog.is_default_removed and name == self._catalog.default:
                raise DefaultModelRemoved(name) from None
            raise

    def _make(self, name: str, place: Place | None, abilities: Abilities) -> Model[Any]:
        if name == DEMO:
            return DemoModel(self._clock)
        if place is None:
            prefix, _, model = name.partition(":")
            key = self._api_key if prefix == self._key_is_for else None
            if prefix not in self._providers:
                self._providers[prefix] = library.provider_of_string(name, prefix, key)
            return library.make_model(name, self._providers[prefix], model, abilities.output_limit)
        if place.provider.wire not in OWN_WIRES:
            if place not in self._providers:
                self._providers[place] = library.provider_of_added(place)
            return library.make_model(name, self._providers[place], place.model, abilities.output_limit)
        how: dict[str, Any] = {
            "patience": self.patience,
            "shown": name,
            "provider": place.provider,
            "output_limit": abilities.output_limit,
        }
        if place.provider.wire == "ollama":
            window = abilities.context_window
            return OllamaChat(place.model, self._endpoint(place), self._clock, window=window, **how)
        return OpenAIChat(place.model, self._endpoint(place), self._clock, **how)

    def _endpoint(self, place: Place) -> Endpoint:
        at = (place.address, place.key, place.is_checked)
        if at not in self._endpoints:
            dialect = place.provider.dialect
            self._endpoints[at] = Endpoint(place.address, place.key, dialect=dialect, is_checked=place.is_checked)
        return self._endpoints[at]

    async def _read_facts(self, place: Place) -> None:
        """Ask a local server for the window of a model; if it does not answer, the run goes on without."""
        until, known = self._facts.get(place.subject, (0.0, None))
        if self._clock.monotonic() < until:
            return
        how: dict[str, Any] = {"seconds": FACTS_SECONDS, "is_checked": place.is_checked}
        try:
            found = await inspect_local(place.provider, place.address, place.key, place.model, **how)
        except WakefulError:
            found = known
        self._facts[place.subject] = (self._clock.monotonic() + FACTS_LAST, found)

    def _known_window(self, name: str) -> int | None:
        model, reference = self._reference(name)
        try:
            _, known = get_snapshot().find_provider_model(model, provider=None, **reference)
        except LookupError:
            return None
        return known.context_window

    def _reference(self, name: str) -> tuple[str, dict[str, Any]]:
        """Return a model's id and the key of its provider in the price list; a compatible endpoint goes by its URL."""
        added = self._catalog.find(name) if self._catalog is not None else None
        prefix, _, model = name.partition(":") if added is None else (added.provider, "", added.model)
        if prefix == CHAT:
            address = added.address if added is not None else self._base_url or PROVIDERS["openai"].address
            return model, {"provider_id": None, "provider_api_url": address}
        return model, {"provider_id": prefix, "provider_api_url": None}


def _is_local(place: Place) -> bool:
    if place.provider.is_local:
        return True
    host = urlsplit(place.address).hostname or ""
    if host == "localhost":
        return True
    try:
        return is_private(ip_address(host))
    except ValueError:
        return False
