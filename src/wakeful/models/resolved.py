"""The place of a model: provider, address and key, of an added model or from a provider string and the environment."""

import os
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from wakeful.core.records import Model as records_Model
from wakeful.models.providers import CHAT, OPENAI, PROVIDERS
from wakeful.models.providers import Provider as providers_Provider
from wakeful.models.rules import ModelKeyMissing


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A model at one endpoint."""

    written: str  # as the agent or the settings name it
    provider: providers_Provider
    model: str  # its id there
    address: str
    key: str | None = field(default=None, repr=False)
    is_checked: bool = False  # addresses are checked when they are connected to
    added: records_Model | None = None  # None: a provider string

    @property
    def subject(self) -> str:
        """Return what a test of this model is about: another model or address is another subject."""
        return f"{self.provider.id} {self.model} {self.address}"


def place_of_added(model: records_Model, key: str | None) -> Place:
    """Return the place of a model that was added or is in the settings file. It uses its own key or none."""
    provider = PROVIDERS[model.provider]
    if provider.needs_key and key is None:
        remedy = f"It has no key. Set one with `wakeful model edit {model.name} --key`."
        if model.source == "settings":
            remedy = f"It has no key. Write one under [models.{model.name}] in the settings file."
        raise ModelKeyMissing(model.name, remedy)
    return Place(
        written=model.name,
        provider=provider,
        model=model.model,
        address=model.address,
        key=key,
        is_checked=True,
        added=model,
    )


def place_of_string(written: str, *, chat_address: str | None, key: str | None, key_is_for: str) -> Place:
    """Return the place of PROVIDER:MODEL. `key` is that of the settings, which is for one provider alone."""
    name, _, model = written.partition(":")
    provider = PROVIDERS[name]
    ours = key if name == key_is_for else None
    if name == CHAT:
        return _place_of_chat(
            Place(written=written, provider=provider, model=model, address=chat_address or OPENAI), ours
        )
    variable = provider.address_variable
    address = (os.environ.get(variable, "").strip() if variable else "") or provider.address
    if address is None:
        raise ModelKeyMissing(written, f"Set {variable} to the address of your resource. {_add(provider)}")
    own = next((value for each in provider.key_variables if (value := os.environ.get(each, "").strip())), None)
    found = own or ours
    if provider.needs_key and found is None and (address == provider.address or provider.address is None):
        raise ModelKeyMissing(written, missing_key(provider))
    if provider.id == "azure":
        address = _azure_address(address)
    if provider.wire == "ollama":
        address = address.rstrip("/").removesuffix("/v1")
    return Place(written=written, provider=provider, model=model, address=address.rstrip("/"), key=found)


def missing_key(provider: providers_Provider) -> str:
    """Return what to do about the missing key of a provider string."""
    return (
        f"Set {' or '.join(provider.key_variables)} in the server's environment (or WAKEFUL_MODEL_API_KEY, if it is "
        f"the provider of WAKEFUL_MODEL). {_add(provider)}"
    )


def _add(provider: providers_Provider) -> str:
    return f"Or add the model with its key: `wakeful model add {provider.id} MODEL`."


def _place_of_chat(place: Place, ours: str | None) -> Place:
    if place.address.rstrip("/") != OPENAI:
        # OpenAI's own key must not be sent to another endpoint that is only compatible.
        return replace(place, address=place.address.rstrip("/"), key=ours)
    key = os.environ.get("OPENAI_API_KEY") or ours
    if not key:
        raise ModelKeyMissing(
            place.written,
            "Set WAKEFUL_MODEL_BASE_URL to your endpoint, or OPENAI_API_KEY for OpenAI itself (or "
            "WAKEFUL_MODEL_API_KEY, if WAKEFUL_MODEL is an openai-chat model).",
        )
    return replace(place, provider=PROVIDERS["openai"], key=key)


def _azure_address(address: str) -> str:
    """Return the address of Azure's current API, or of the dated one if the environment names a version."""
    version = os.environ.get("OPENAI_API_VERSION", "").strip()
    if urlsplit(address).path.rstrip("/"):
        return address
    return f"{address.rstrip('/')}?api-version={version}" if version else f"{address.rstrip('/')}/openai/v1"
