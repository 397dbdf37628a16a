"""Models of pydantic-ai's own classes: Anthropic, Google, Bedrock, and providers that only it knows.

Provider SDKs are imported when one of their models is first used, never at start.
"""

import ipaddress
import re
from typing import Any
from urllib.parse import urlsplit

import httpx2
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
from pydantic_ai.settings import ModelSettings

from wakeful.core.outgoing import resolve
from wakeful.models.endpoint import make_client
from wakeful.models.errors import missing_package, quote, variables_in, without_advice
from wakeful.models.names import NoSuchModel
from wakeful.models.providers import PROVIDERS, check_ip
from wakeful.models.resolved import ResolvedModel, missing_key
from wakeful.models.rules import ModelKeyMissing

SECONDS = httpx2.Timeout(600.0, connect=30.0)
OPENAI_FAMILY = frozenset({"openai-responses"})  # use a placeholder as the key when OPENAI_BASE_URL is set
# Tokens of titles and tests, which are not streamed: then Anthropic's SDK refuses more than 21,333.
MAX_SHORT = 16_384
_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d")


def make_model(written: str, provider: Provider[Any], model: str, output_limit: int) -> Model[Any]:
    """Make a model of a provider; errors name it as it is written."""
    prefix = written.partition(":")[0] if ":" in written else provider.name
    try:
        made = infer_model(f"{prefix}:{model}", provider_factory=lambda _: provider)
    except ImportError as error:
        raise missing_package(written, error) from error
    except UserError as error:
        raise NoSuchModel(written, quote(without_advice(str(error)))) from error
    settings = ModelSettings(max_tokens=min(output_limit, MAX_SHORT))
    made._settings = settings  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  (`infer_model` takes none)
    return made


def provider_of_added(found: ResolvedModel) -> Provider[Any]:
    """Make the provider of an added model, with its own key and nothing from the environment."""
    assert found.provider is not None
    assert found.key is not None  # all of them need one
    try:
        return without_retries(_MAKERS[found.provider.wire](found))
    except ImportError as error:
        raise missing_package(found.written, error) from error


def provider_of_string(written: str, prefix: str, key: str | None) -> Provider[Any]:
    """Make the provider of PROVIDER:MODEL from the environment, else with `key`."""
    try:
        kind = infer_provider_class(prefix)
    except ValueError as error:
        raise NoSuchModel(written, f"no provider is called {prefix!r}.") from error
    except ImportError as error:
        raise missing_package(written, error) from error
    make: Any = kind  # the signatures differ
    key = None if prefix.startswith("gateway/") else key
    try:
        if key and prefix in OPENAI_FAMILY:
            return without_retries(make(api_key=key))
        return without_retries(infer_provider(prefix))
    except UserError as error:
        problem = ModelKeyMissing(written, _remedy(prefix, str(error)))
        if key is None:
            raise problem from error
    try:
        return without_retries(make(api_key=key))
    except (TypeError, UserError):  # it needs more than a key
        raise problem from None


def close(provider: Provider[Any]) -> None:
    """Close the connections of an SDK that is not asynchronous."""
    if provider.name == "bedrock":
        provider.client.close()


async def check_connection(found: ResolvedModel) -> None:
    """Check the addresses of an endpoint whose SDK connects by itself, as the others are at each connection."""
    parts = urlsplit(found.address)
    host = parts.hostname or ""
    for address in await resolve(host):  # none: the request will say so
        parsed = ipaddress.ip_address(address.partition("%")[0])
        check_ip(host, parsed, has_plain_key=parts.scheme == "http" and found.key is not None)


def _anthropic(found: ResolvedModel) -> Provider[Any]:
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = _client(found)
    provider = _owning(AnthropicProvider(api_key=found.key, base_url=found.address, http_client=client), client)
    # Headers of ANTHROPIC_CUSTOM_HEADERS are for the endpoint of the environment; they may contain its key.
    provider.client._custom_headers = {}  # noqa: SLF001  (the SDK has no other way to leave them out)
    return provider


def _google(found: ResolvedModel) -> Provider[Any]:
    from pydantic_ai.providers.google import GoogleProvider

    client = _client(found)
    return _owning(GoogleProvider(api_key=found.key, base_url=found.address, http_client=client), client)


def _bedrock(found: ResolvedModel) -> Provider[Any]:
    from pydantic_ai.providers.bedrock import BedrockProvider

    region = _REGION.search(urlsplit(found.address).hostname or "")
    return BedrockProvider(
        api_key=found.key or "", base_url=found.address, region_name=region[0] if region else "us-east-1"
    )


def _owning(provider: Provider[Any], client: httpx2.AsyncClient) -> Provider[Any]:
    """Let a provider close a client that was made for it alone."""
    provider._own_http_client = client  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  (there is no other way)
    return provider


_MAKERS = {"anthropic": _anthropic, "google": _google, "bedrock": _bedrock}


def _client(found: ResolvedModel) -> httpx2.AsyncClient:
    return make_client(found.address, {}, has_key=True, timeout=SECONDS)


def without_retries(provider: Provider[Any]) -> Provider[Any]:
    """Turn off an SDK's silent retries: the loop retries, and shows each one."""
    client: Any = provider.client
    if hasattr(client, "max_retries"):
        client.max_retries = 0
    return provider


def _remedy(prefix: str, words: str) -> str:
    """Return what a provider needs, without the advice for programmers of the library."""
    if prefix in PROVIDERS:
        return missing_key(PROVIDERS[prefix])
    variables = variables_in(words)
    return f"Set {' and '.join(variables)} in the server's environment." if variables else quote(without_advice(words))
