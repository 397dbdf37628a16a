"""Models by name: creating them, and their limits, abilities and prices.

An output limit is always sent, so that no answer is endless.
"""

import asyncio
import threading
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import ROUND_HALF_UP
from typing import Any

from genai_prices import calc_price
from genai_prices.data_snapshot import get_snapshot
from pydantic_ai.models import Model
from pydantic_ai.providers import Provider
from pydantic_ai.usage import RequestUsage

from wakeful.core.clock import Clock, SystemClock
from wakeful.core.errors import WakefulError
from wakeful.core.records import Abilities, StoredToolCalls
from wakeful.models import library
from wakeful.models.catalog import ModelCatalog
from wakeful.models.demo import DemoModel
from wakeful.models.endpoint import Endpoint, origin_of
from wakeful.models.errors import translate
from wakeful.models.lists import inspect_local
from wakeful.models.names import DEMO, DefaultModelRemoved, NoSuchModel, check_written
from wakeful.models.ollama import OllamaChat
from wakeful.models.openai_chat import ModelTimeouts, OpenAIChat
from wakeful.models.providers import CHAT, PROVIDERS, Dialect
from wakeful.models.resolved import ResolvedModel, resolve_added, resolve_string, unresolved
from wakeful.models.rules import ListedModel, ModelKeyUnreadable, read_tool_calls

DEFAULT_WINDOW = 128_000
MAX_CACHED = 256
FACTS_LAST = 300.0  # seconds until a local server is asked again for the window of a model
FACTS_SECONDS = 5.0  # a run does not wait longer for them


@dataclass(frozen=True, slots=True)
class _Made:
    """A model, and what it was made from: if that changes, it is made again."""

    made_from: tuple[ResolvedModel, Abilities]
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
        found = self.find(name)
        if found.problem is None and found.is_local and not (found.added and found.added.context_window):
            async with self._asking.setdefault(found.subject, asyncio.Lock()):  # runs that begin together ask once
                await self._read_facts(found)

    async def load(self, name: str | None = None) -> Model[Any]:
        """Resolve a model in a thread: importing an SDK takes a second or more."""
        name = name or self.default
        if name in self._brought:
            return self._brought[name]
        known, found = self._models.get(name), self._find_usable(name)
        if found.added is not None and found.provider is not None and found.provider.wire == "bedrock":
            await library.check_connection(found)
        if known is not None and known.made_from == (found, self.abilities(name)):
            return known.model
        return await asyncio.to_thread(self.resolve, name)

    def resolve(self, name: str | None = None) -> Model[Any]:
        """Return the model of this name, or the default one; raise if something is missing."""
        name = name or self.default
        if name in self._brought:
            return self._brought[name]
        with self._lock:
            made_from = (self._find_usable(name), self.abilities(name))
            known = self._models.get(name)
            if known is None or known.made_from != made_from:
                model = self._make(*made_from)
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
        found = self.find(name)
        return translate(error, found.written, hide=[*keys, found.key or ""])

    def place_of(self, name: str | None = None) -> str:
        """Return the origin of a model's URL; its name if the URL is not known."""
        name = name or self.default
        known = self._models.get(name)
        model = self._brought.get(name) or (known and known.model)
        return origin_of(model.base_url) if model is not None and model.base_url else name

    def find(self, name: str | None = None) -> ResolvedModel:
        """Return what is known about a model, also if it cannot be used."""
        name = name or self.default
        if name in self._brought or name == DEMO:
            return unresolved(name)
        added = self._catalog.find(name) if self._catalog is not None else None
        try:
            if added is not None:
                assert self._catalog is not None
                return resolve_added(added, self._catalog.key_of(added))
            self._check_written(name)
            return resolve_string(name, chat_address=self._base_url, key=self._api_key, key_is_for=self._key_is_for)
        except ModelKeyUnreadable as problem:
            assert added is not None
            return replace(resolve_added(added, None), problem=problem)
        except WakefulError as problem:
            return unresolved(name, problem)

    def context_window(self, name: str | None = None) -> int:
        """Return the context window in tokens; the default if it is not known."""
        return self.abilities(name).context_window

    def abilities(self, name: str | None = None) -> Abilities:
        """Return the limits and abilities of a model, as far as they are known."""
        found = self.find(name)
        # The owner's word counts first, then what a local server says.
        facts = self._facts.get(found.subject, (0.0, None))[1] or ListedModel(id=found.model)
        said = found.added or facts
        known = said.context_window or facts.context_window or self._known_window(found)
        window = known or self._window
        limit = output_limit if found.is_own_wire or found.written in self._brought else largest_output
        return Abilities(
            context_window=window,
            output_limit=said.output_limit or facts.output_limit or limit(found.model, window),
            tool_calls=read_tool_calls((found.added and found.added.tool_calls) or self._tested(found) or "native"),
            images=said.images if said.images is not None else facts.images,
            thinking=said.thinking if said.thinking is not None else facts.thinking,
            is_window_known=bool(known),
        )

    def price(self, name: str | None, usage: RequestUsage, *, at: datetime | None = None) -> int | None:
        """Return the cost in millionths of a dollar, or None if the price is unknown."""
        found = self.find(name)
        if found.written == DEMO:
            return 0
        added = found.added
        if added is not None and added.input_price is not None and added.output_price is not None:
            return round(usage.input_tokens * added.input_price + usage.output_tokens * added.output_price)
        try:
            cost = calc_price(usage, found.model, genai_request_timestamp=at, **self._price_list(found))
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

    def _find_usable(self, name: str) -> ResolvedModel:
        found = self.find(name)
        if found.problem is not None:
            raise found.problem
        return found

    def _check_written(self, name: str) -> None:
        try:
            check_written(name, () if self._catalog is None else self._catalog.names)
        except NoSuchModel:
            if self._catalog is not None and self._catalog.is_default_removed and name == self._catalog.default:
                raise DefaultModelRemoved(name) from None
            raise

    def _make(self, found: ResolvedModel, abilities: Abilities) -> Model[Any]:
        if found.written == DEMO:
            return DemoModel(self._clock)
        if found.provider is None or not found.is_own_wire:
            return library.make_model(found.written, self._provider(found), found.model, abilities.output_limit)
        how: dict[str, Any] = {
            "patience": self.patience,
            "shown": found.written,
            "provider": found.provider,
            "output_limit": abilities.output_limit,
        }
        endpoint = self._endpoint(found, found.provider.dialect)
        if found.provider.wire == "ollama":
            return OllamaChat(found.model, endpoint, self._clock, window=abilities.context_window, **how)
        return OpenAIChat(found.model, endpoint, self._clock, **how)

    def _provider(self, found: ResolvedModel) -> Provider[Any]:
        """Return the provider of a model that pydantic-ai connects to: of an added one, or of the environment."""
        of: object = found.prefix if found.added is None else found
        if of not in self._providers:
            key = self._api_key if found.prefix == self._key_is_for else None
            self._providers[of] = (
                library.provider_of_added(found)
                if found.added is not None
                else library.provider_of_string(found.written, found.prefix, key)
            )
        return self._providers[of]

    def _endpoint(self, found: ResolvedModel, dialect: Dialect) -> Endpoint:
        at = (found.address, found.key, found.is_checked)
        if at not in self._endpoints:
            self._endpoints[at] = Endpoint(found.address, found.key, dialect=dialect, is_checked=found.is_checked)
        return self._endpoints[at]

    async def _read_facts(self, found: ResolvedModel) -> None:
        """Ask a local server for the window of a model; if it does not answer, the run goes on without."""
        until, known = self._facts.get(found.subject, (0.0, None))
        if self._clock.monotonic() < until:
            return
        assert found.provider is not None
        how: dict[str, Any] = {"seconds": FACTS_SECONDS, "is_checked": found.is_checked}
        try:
            facts = await inspect_local(found.provider, found.address, found.key, found.model, **how)
        except WakefulError:
            facts = known
        self._facts[found.subject] = (self._clock.monotonic() + FACTS_LAST, facts)

    def _tested(self, found: ResolvedModel) -> StoredToolCalls | None:
        if self._catalog is None or found.provider is None:
            return None
        return self._catalog.tested(found.written, found.subject)

    def _known_window(self, found: ResolvedModel) -> int | None:
        try:
            _, known = get_snapshot().find_provider_model(found.model, provider=None, **self._price_list(found))
        except LookupError:
            return None
        return known.context_window

    def _price_list(self, found: ResolvedModel) -> dict[str, Any]:
        """Return the key of a provider in the price list; a compatible endpoint goes by its URL."""
        if found.prefix != CHAT:
            return {"provider_id": found.prefix, "provider_api_url": None}
        address = found.address or self._base_url or PROVIDERS["openai"].address
        return {"provider_id": None, "provider_api_url": address}


# Default limits of a model's answers: an output limit is always sent, so that no answer is endless.


MAX_OUTPUT_SHARE = 4  # an answer may take a quarter of the window
DEFAULT_OUTPUT = 8_192  # tokens; every current model accepts it
# Ids of models that begin so accept less, or spend more of it on thinking.
_OUTPUTS = (
    (("gpt-3.5", "gpt-4-", "gpt-4:"), 4_096),
    (("gpt-5", "gpt-6", "o1", "o3", "o4"), 32_768),
)
# The most that models accept which are used through their providers' libraries, thinking included. A lower limit than
# the tokens for thinking would be refused, so these are the whole of it. The first that fits counts.
_LARGEST = (
    (("claude-3-7", "claude-sonnet-4", "claude-haiku-4", "claude-opus-4-5"), 64_000),
    (("claude-3-5",), 8_192),
    (("claude-3",), 4_096),
    (("claude-opus-4-6", "claude-opus-4-7", "claude-opus-4-8", "claude-opus-5", "claude-sonnet-5"), 128_000),
    (("claude",), 32_000),
    (("gemini-1", "gemini-2.0"), 8_192),
    (("gemini",), 65_536),
    (("amazon.nova", "mistral."), 4_096),
    (("cohere.", "command-", "ai21."), 4_000),
    (("amazon.titan",), 3_000),
    (("meta.",), 2_048),
)


def largest_output(model: str, window: int) -> int:
    """Return the output limit of a model of a provider's library; Bedrock's ids have a region and a maker in front."""
    plain = model.rpartition("/")[2]
    found = (limit for starts, limit in _LARGEST if any(f".{start}" in f".{plain}" for start in starts))
    return next(found, None) or output_limit(model, window)


def output_limit(model: str, window: int) -> int:
    """Return the tokens that one answer of a model may have, if nobody has set a limit."""
    plain = model.rpartition("/")[2]
    known = next((limit for starts, limit in _OUTPUTS if plain.startswith(starts)), DEFAULT_OUTPUT)
    return max(256, min(known, window // MAX_OUTPUT_SHARE))
