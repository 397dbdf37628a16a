"""A model by the name that an agent or the settings wrote: its provider, address and key, or why it cannot be used."""

import os
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from urllib.parse import urlsplit

from wakeful.core.addresses import is_loopback
from wakeful.core.errors import WakefulError
from wakeful.core.records import Model
from wakeful.models.providers import CHAT, OPENAI, PROVIDERS, Provider, is_private
from wakeful.models.rules import ModelKeyMissing

OWN_WIRES = ("chat", "ollama")  # the others are spoken by classes of pydantic-ai


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedModel:
    """All that is known about a model before it is asked anything."""

    written: str  # as the agent or the settings name it
    prefix: str  # the provider, which only pydantic-ai may know; also of the demo model: its name
    model: str  # its id there
    provider: Provider | None = None  # None: pydantic-ai finds it, and its address and key, in the environment
    address: str = ""
    key: str | None = field(default=None, repr=False)
    added: Model | None = None  # None: not a model that was added or is in the settings file
    problem: WakefulError | None = field(default=None, compare=False)  # why it cannot be used

    @property
    def is_checked(self) -> bool:
        """Return whether addresses are checked when they are connected to: an owner gave them over REST."""
        return self.added is not None

    @property
    def is_own_wire(self) -> bool:
        return self.provider is not None and self.provider.wire in OWN_WIRES

    @property
    def subject(self) -> str:
        """Return what a test of this model is about: another model or address is another subject."""
        return self.written if self.provider is None else f"{self.provider.id} {self.model} {self.address}"

    @property
    def provider_string(self) -> str:
        """Return PROVIDER:MODEL of an added model; other names as they are."""
        return self.written if self.added is None else self.added.written

    @property
    def is_local(self) -> bool:
        """Return whether it runs on this machine or in a private network, where it may have to be loaded first."""
        if self.provider is None:
            return False
        host = urlsplit(self.address).hostname or ""
        if self.provider.is_local or is_loopback(host):
            return True
        try:
            return is_private(ip_address(host))
        except ValueError:
            return False


def unresolved(written: str, problem: WakefulError | None = None) -> ResolvedModel:
    """Return a model of which only the name is known."""
    prefix, _, model = written.partition(":")
    return ResolvedModel(written=written, prefix=prefix, model=model, problem=problem)


def resolve_added(model: Model, key: str | None) -> ResolvedModel:
    """Resolve a model that was added or is in the settings file. It uses its own key or none."""
    provider = PROVIDERS[model.provider]
    problem = None
    if provider.needs_key and key is None:
        remedy = f"It has no key. Set one with `wakeful model edit {model.name} --key`."
        if model.source == "settings":
            remedy = f"It has no key. Write one under [models.{model.name}] in the settings file."
        problem = ModelKeyMissing(model.name, remedy)
    return ResolvedModel(
        written=model.name,
        prefix=model.provider,
        provider=provider,
        model=model.model,
        address=model.address,
        key=key,
        added=model,
        problem=problem,
    )


def resolve_string(written: str, *, chat_address: str | None, key: str | None, key_is_for: str) -> ResolvedModel:
    """Resolve PROVIDER:MODEL, or raise if a key or an address is missing.

    `key` is that of the settings, which is for one provider alone.
    """
    found = unresolved(written)
    provider = PROVIDERS.get(found.prefix)
    if provider is None or provider.wire not in OWN_WIRES:
        return found  # pydantic-ai reads the environment
    ours = key if found.prefix == key_is_for else None
    if found.prefix == CHAT:
        return _resolve_chat(replace(found, provider=provider, address=(chat_address or OPENAI).rstrip("/")), ours)
    variable = provider.address_variable
    address = (os.environ.get(variable, "").strip() if variable else "") or provider.address
    if address is None:
        raise ModelKeyMissing(written, f"Set {variable} to the address of your resource. {_add(provider)}")
    own = next((value for each in provider.key_variables if (value := os.environ.get(each, "").strip())), None)
    if provider.needs_key and not (own or ours) and (address == provider.address or provider.address is None):
        raise ModelKeyMissing(written, missing_key(provider))
    if provider.id == "azure":
        address = _azure_address(address)
    if provider.wire == "ollama":
        address = address.rstrip("/").removesuffix("/v1")
    return replace(found, provider=provider, address=address.rstrip("/"), key=own or ours)


def missing_key(provider: Provider) -> str:
    """Return what to do about the missing key of a provider string."""
    return (
        f"Set {' or '.join(provider.key_variables)} in the server's environment (or WAKEFUL_MODEL_API_KEY, if it is "
        f"the provider of WAKEFUL_MODEL). {_add(provider)}"
    )


def _add(provider: Provider) -> str:
    return f"Or add the model with its key: `wakeful model add {provider.id} MODEL`."


def _resolve_chat(found: ResolvedModel, ours: str | None) -> ResolvedModel:
    if found.address != OPENAI:
        return replace(found, key=ours)  # OpenAI's own key must not be sent to another endpoint that is only compatible
    key = os.environ.get("OPENAI_API_KEY") or ours
    if not key:
        raise ModelKeyMissing(
            found.written,
            "Set WAKEFUL_MODEL_BASE_URL to your endpoint, or OPENAI_API_KEY for OpenAI itself (or "
            "WAKEFUL_MODEL_API_KEY, if WAKEFUL_MODEL is an openai-chat model).",
        )
    return replace(found, provider=PROVIDERS["openai"], key=key)


def _azure_address(address: str) -> str:
    """Return the address of Azure's current API, or of the dated one if the environment names a version."""
    version = os.environ.get("OPENAI_API_VERSION", "").strip()
    if urlsplit(address).path.rstrip("/"):
        return address
    return f"{address.rstrip('/')}?api-version={version}" if version else f"{address.rstrip('/')}/openai/v1"
