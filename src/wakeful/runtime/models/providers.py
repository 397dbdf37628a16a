"""Models by name: creating them, and their context windows and prices.

Provider SDKs are imported when one of their models is first used, never at start. The stored key is sent only to the
provider it was set for, whatever model an agent names.
"""

import asyncio
import os
import threading
from datetime import datetime
from decimal import ROUND_HALF_UP
from difflib import get_close_matches
from typing import Any

from genai_prices import calc_price
from genai_prices.data_snapshot import get_snapshot
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model, known_model_names
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
from pydantic_ai.usage import RequestUsage

from wakeful.clock import Clock, SystemClock
from wakeful.domain.errors import WakefulError
from wakeful.runtime.models.demo.model import DemoModel
from wakeful.runtime.models.errors import (
    KEYLESS_ADVICE,
    ModelKeyMissing,
    NoSuchModel,
    ProviderMissing,
    quote,
    translate,
)
from wakeful.runtime.models.openai_chat.endpoint import Endpoint, origin_of
from wakeful.runtime.models.openai_chat.model import ModelTimeouts, OpenAIChat

DEMO = "demo"
CHAT = "openai-chat"  # our own client
OPENAI_KEY = "OPENAI_API_KEY"
OPENAI_FAMILY = frozenset({"openai", "openai-responses"})  # use a placeholder as the key when OPENAI_BASE_URL is set
DEFAULT_WINDOW = 128_000
MAX_CACHED = 256


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
    ) -> None:
        self.default = default_model
        self._api_key = api_key
        self._clock = clock or SystemClock()
        self._patience = patience
        self._window = window
        self._key_is_for = CHAT if default_model == DEMO and base_url else default_model.partition(":")[0]
        self._endpoint = Endpoint(base_url, self._chat_key(base_url))
        self._providers: dict[str, Provider[Any]] = {}
        self._models: dict[str, Model[Any]] = {}
        self._lock = threading.Lock()

    async def load(self, name: str | None = None) -> Model[Any]:
        """Resolve a model in a thread: importing an SDK takes a second or more."""
        known = self._models.get(name or self.default)
        return known if known is not None else await asyncio.to_thread(self.resolve, name)

    def resolve(self, name: str | None = None) -> Model[Any]:
        """Return the model of this name, or the default one; raise if something is missing."""
        name = name or self.default
        with self._lock:
            if name not in self._models:
                model = self._make(name)
                while len(self._models) >= MAX_CACHED:
                    del self._models[next(iter(self._models))]
                self._models[name] = model
            return self._models[name]

    def translate(self, error: BaseException, name: str | None = None) -> WakefulError | None:
        """Return our error for a model's exception, without the key; None if it is not about the model."""
        return translate(error, name or self.default, hide=[self._api_key or "", *self._endpoint.secrets])

    def place_of(self, name: str | None = None) -> str:
        """Return the origin of a model's URL; its name if the URL is not known."""
        name = name or self.default
        known = self._models.get(name)
        return origin_of(known.base_url) if known is not None and known.base_url else name

    def context_window(self, name: str | None = None) -> int:
        """Return the context window in tokens; the default if it is not known."""
        prefix, _, model = (name or self.default).partition(":")
        try:
            _, known = get_snapshot().find_provider_model(model, provider=None, **self._reference(prefix))
        except LookupError:
            return self._window
        return known.context_window or self._window

    def price(self, name: str | None, usage: RequestUsage, *, at: datetime | None = None) -> int | None:
        """Return the cost in millionths of a dollar, or None if the price is unknown."""
        prefix, _, model = (name or self.default).partition(":")
        if prefix == DEMO:
            return 0
        try:
            cost = calc_price(usage, model, genai_request_timestamp=at, **self._reference(prefix))
        except (LookupError, ValueError):
            return None
        return int((cost.total_price * 1_000_000).to_integral_value(ROUND_HALF_UP))

    async def aclose(self) -> None:
        await self._endpoint.aclose()
        for provider in self._providers.values():
            async with provider:  # leaving it closes its connections
                pass
        self._providers.clear()
        self._models.clear()

    def _reference(self, prefix: str) -> dict[str, Any]:
        """Return the key of a provider in the price list; a compatible endpoint is found by its URL."""
        if prefix == CHAT:
            return {"provider_id": None, "provider_api_url": self._endpoint.base_url}
        return {"provider_id": prefix, "provider_api_url": None}

    def _chat_key(self, base_url: str | None) -> str | None:
        ours = self._api_key if self._key_is_for == CHAT else None
        # OpenAI's own key must not be sent to another endpoint that is only compatible.
        return os.environ.get(OPENAI_KEY) or ours if Endpoint(base_url).is_openai else ours

    def _make(self, name: str) -> Model[Any]:
        prefix, _, model = name.partition(":")
        if name == DEMO:
            return DemoModel(self._clock)
        if not model:
            raise NoSuchModel(name, _suggest(name))
        if prefix == CHAT:
            return self._make_chat(name, model)
        provider = self._provider(name, prefix)
        try:
            return infer_model(name, provider_factory=lambda _: provider)
        except ImportError as error:
            raise ProviderMissing(name, quote(str(error))) from error
        except UserError as error:
            raise NoSuchModel(name, quote(str(error), hide=[self._api_key or ""])) from error

    def _make_chat(self, name: str, model: str) -> Model[Any]:
        if self._endpoint.is_openai and not self._endpoint.secrets:
            remedy = (
                f"Set WAKEFUL_MODEL_BASE_URL to your endpoint, or {OPENAI_KEY} for OpenAI itself"
                " (or WAKEFUL_MODEL_API_KEY, if WAKEFUL_MODEL is an openai-chat model)."
            )
            raise ModelKeyMissing(name, remedy)
        return OpenAIChat(model, self._endpoint, self._clock, patience=self._patience)

    def _provider(self, name: str, prefix: str) -> Provider[Any]:
        if prefix not in self._providers:
            self._providers[prefix] = _without_retries(self._set_up(name, prefix))
        return self._providers[prefix]

    def _set_up(self, name: str, prefix: str) -> Provider[Any]:
        try:
            kind = infer_provider_class(prefix)
        except ValueError as error:
            raise NoSuchModel(name, _suggest(name)) from error
        except ImportError as error:
            raise ProviderMissing(name, quote(str(error))) from error
        make: Any = kind  # the signatures differ
        has_our_key = bool(self._api_key) and prefix == self._key_is_for and not prefix.startswith("gateway/")
        try:
            if has_our_key and prefix in OPENAI_FAMILY and OPENAI_KEY not in os.environ:
                return make(api_key=self._api_key)
            return infer_provider(prefix)
        except UserError as error:
            problem = ModelKeyMissing(name, _remedy(error))
            if not has_our_key:
                raise problem from error
        try:
            return make(api_key=self._api_key)
        except (TypeError, UserError):  # it needs more than a key
            raise problem from None


def _without_retries(provider: Provider[Any]) -> Provider[Any]:
    """Turn off an SDK's silent retries: the loop retries, and shows each one."""
    client: Any = provider.client
    if hasattr(client, "max_retries"):
        client.max_retries = 0
    return provider


def _remedy(error: Exception) -> str:
    """Return what a provider needs, without the advice for users of the library."""
    return str(error).partition(KEYLESS_ADVICE)[0].strip()


def _suggest(name: str) -> str:
    nearest = get_close_matches(name, known_model_names(), n=1, cutoff=0.6)
    return f"did you mean {nearest[0]!r}?" if nearest else "no provider is called that."
