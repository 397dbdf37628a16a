"""The table of providers that models can be used from: address, key, wire and list of each.

Addresses of endpoints are checked here too: which are accepted, and where a key may be sent.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import SplitResult, parse_qsl, urlsplit

from wakeful.core.addresses import Address, hide_login
from wakeful.core.errors import Forbidden, Invalid

Wire = Literal["chat", "ollama", "anthropic", "google", "bedrock"]
Listing = Literal["chat", "ollama", "lmstudio", "llamacpp", "anthropic", "google", "bedrock"]
Effort = Literal["reasoning_effort", "reasoning", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Differences between a provider's chat completions and the others'."""

    output_field: str = "max_tokens"
    reports_usage_unasked: bool = False  # and refuses `stream_options`
    effort: Effort = "reasoning_effort"  # the field of the thinking level
    key_header: Literal["Authorization", "api-key"] = "Authorization"
    has_short_call_ids: bool = False  # 9 letters and digits; others are refused
    seed_field: str = "seed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A service or program that runs models."""

    id: str
    label: str
    wire: Wire
    address: str | None = None  # None: everyone has their own
    address_example: str | None = None
    address_variable: str | None = None  # of provider strings such as `ollama:NAME`
    needs_key: bool = True
    key_variables: tuple[str, ...] = ()  # of provider strings
    key_page: str | None = None  # where a person gets a key
    is_local: bool = False  # usually runs on the owner's own machine
    listing: Listing | None = None  # how it lists its models; None: it does not
    example: str = ""  # an id of a model
    extra: str | None = None  # of our package
    note: str | None = None
    dialect: Dialect = Dialect()


OPENAI = "https://api.openai.com/v1"
CHAT = "openai-chat"

_ALL = (
    Provider(
        id="openai",
        label="OpenAI",
        wire="chat",
        address=OPENAI,
        address_variable="OPENAI_BASE_URL",
        key_variables=("OPENAI_API_KEY",),
        key_page="https://platform.openai.com/api-keys",
        listing="chat",
        example="gpt-5",
        # Its reasoning models refuse the old name.
        dialect=Dialect(output_field="max_completion_tokens"),
    ),
    Provider(
        id="anthropic",
        label="Anthropic",
        wire="anthropic",
        address="https://api.anthropic.com",
        address_variable="ANTHROPIC_BASE_URL",
        key_variables=("ANTHROPIC_API_KEY",),
        key_page="https://console.anthropic.com/settings/keys",
        listing="anthropic",
        example="claude-sonnet-4-5",
    ),
    Provider(
        id="google",
        label="Google Gemini",
        wire="google",
        address="https://generativelanguage.googleapis.com",
        key_variables=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        key_page="https://aistudio.google.com/apikey",
        listing="google",
        example="gemini-2.5-flash",
    ),
    Provider(
        id="openrouter",
        label="OpenRouter",
        wire="chat",
        address="https://openrouter.ai/api/v1",
        key_variables=("OPENROUTER_API_KEY",),
        key_page="https://openrouter.ai/settings/keys",
        listing="chat",
        example="anthropic/claude-sonnet-4.5",
        dialect=Dialect(effort="reasoning"),
    ),
    Provider(
        id="groq",
        label="Groq",
        wire="chat",
        address="https://api.groq.com/openai/v1",
        key_variables=("GROQ_API_KEY",),
        key_page="https://console.groq.com/keys",
        listing="chat",
        example="llama-3.3-70b-versatile",
        dialect=Dialect(output_field="max_completion_tokens"),
    ),
    Provider(
        id="mistral",
        label="Mistral",
        wire="chat",
        address="https://api.mistral.ai/v1",
        key_variables=("MISTRAL_API_KEY",),
        key_page="https://console.mistral.ai/api-keys",
        listing="chat",
        example="mistral-medium-latest",
        # It refuses fields that it does not know, and call ids of other lengths.
        dialect=Dialect(reports_usage_unasked=True, has_short_call_ids=True, seed_field="random_seed", effort="none"),
    ),
    Provider(
        id="deepseek",
        label="DeepSeek",
        wire="chat",
        address="https://api.deepseek.com/v1",
        key_variables=("DEEPSEEK_API_KEY",),
        key_page="https://platform.deepseek.com/api_keys",
        listing="chat",
        example="deepseek-chat",
    ),
    Provider(
        id="xai",
        label="xAI",
        wire="chat",
        address="https://api.x.ai/v1",
        key_variables=("XAI_API_KEY",),
        key_page="https://console.x.ai",
        listing="chat",
        example="grok-4",
    ),
    Provider(
        id="azure",
        label="Azure OpenAI",
        wire="chat",
        address_example="https://RESOURCE.openai.azure.com/openai/v1",
        address_variable="AZURE_OPENAI_ENDPOINT",
        key_variables=("AZURE_OPENAI_API_KEY",),
        key_page="https://ai.azure.com",
        example="the name of your deployment",
        note="The model is the name of your deployment. An address that ends with ?api-version=… uses the dated API.",
        dialect=Dialect(output_field="max_completion_tokens", key_header="api-key"),
    ),
    Provider(
        id="bedrock",
        label="Amazon Bedrock",
        wire="bedrock",
        address="https://bedrock-runtime.us-east-1.amazonaws.com",
        address_example="https://bedrock-runtime.REGION.amazonaws.com",
        key_variables=("AWS_BEARER_TOKEN_BEDROCK",),
        key_page="https://console.aws.amazon.com/bedrock",
        listing="bedrock",
        example="us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        extra="bedrock",
        note="The key is a Bedrock API key. The region is part of the address.",
    ),
    Provider(
        id="ollama",
        label="Ollama",
        wire="ollama",
        address="http://127.0.0.1:11434",
        address_variable="OLLAMA_BASE_URL",
        needs_key=False,
        key_variables=("OLLAMA_API_KEY",),
        is_local=True,
        listing="ollama",
        example="qwen3:8b",
    ),
    Provider(
        id="lmstudio",
        label="LM Studio",
        wire="chat",
        address="http://127.0.0.1:1234/v1",
        needs_key=False,
        is_local=True,
        listing="lmstudio",
        example="qwen/qwen3-8b",
    ),
    Provider(
        id="vllm",
        label="vLLM",
        wire="chat",
        address="http://127.0.0.1:8000/v1",
        address_variable="VLLM_BASE_URL",
        needs_key=False,
        key_variables=("VLLM_API_KEY",),
        is_local=True,
        listing="chat",
        example="Qwen/Qwen3-8B",
    ),
    Provider(
        id="llamacpp",
        label="llama.cpp",
        wire="chat",
        address="http://127.0.0.1:8080/v1",
        needs_key=False,
        key_variables=("LLAMA_API_KEY",),
        is_local=True,
        listing="llamacpp",
        example="qwen3-8b",
    ),
    Provider(
        id=CHAT,
        label="Other (OpenAI-compatible)",
        wire="chat",
        address_example="https://HOST/v1",
        needs_key=False,
        listing="chat",
        example="the model's id at the endpoint",
    ),
)
PROVIDERS: Mapping[str, Provider] = {provider.id: provider for provider in _ALL}

# Provider strings that pydantic-ai handles with its own classes, if the provider's package is installed. A test
# compares this list with the library's.
LIBRARY_PROVIDERS = frozenset(
    {
        "alibaba",
        "azure-responses",
        "bedrock-mantle",
        "cerebras",
        "cohere",
        "crusoe",
        "fireworks",
        "github",
        "github-copilot",
        "google-cloud",
        "heroku",
        "huggingface",
        "litellm",
        "meta",
        "moonshotai",
        "nebius",
        "openai-chatgpt",
        "openai-codex",
        "openai-decisions",
        "openai-responses",
        "ovhcloud",
        "sambanova",
        "snowflake",
        "system-one",
        "together",
        "typesafe",
        "vercel",
        "zai",
    }
)
GATEWAY = "gateway/"  # the prefix of providers behind pydantic's gateway


# Addresses of models' endpoints: which are accepted, and where a key may be sent.


MAX_ADDRESS = 500  # characters
_REFUSED = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",
        "100.100.100.200/32",  # one cloud's metadata server
        "168.63.129.16/32",  # an internal service of one cloud
        "169.254.0.0/16",  # link-local; the other clouds' metadata servers
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "::/128",
        "fd00:ec2::254/128",  # one cloud's metadata server
        "fe80::/10",  # link-local
        "ff00::/8",  # multicast
    )
)
_PRIVATE = tuple(
    ipaddress.ip_network(network)
    for network in ("10.0.0.0/8", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR = ipaddress.IPv6Network("2002::/16")


class BadModelAddress(Invalid):
    code = "bad_model_address"

    def __init__(self, address: str, problem: str) -> None:
        super().__init__(
            f"The address {hide_login(address)[:MAX_ADDRESS]!r} cannot be used: {problem}", field="address"
        )


class ModelAddressRefused(Forbidden):
    """A host that is never asked for an answer, such as a cloud's metadata server."""

    code = "model_address_refused"

    def __init__(self, host: str, address: str) -> None:
        where = f"{host!r}" if host == address else f"{host!r} ({address})"
        super().__init__(
            f"The address of the host {where} is link-local or reserved, and models are not used from there. Use the "
            "address of the model's server.",
            field="address",
        )


class KeyNeedsHttps(Forbidden):
    code = "key_needs_https"

    def __init__(self, host: str) -> None:
        super().__init__(
            f"A key is sent over plain http only to this machine or a private network, and {host!r} is neither. Use an "
            "https:// address, or no key.",
            field="address",
        )


def check_address(provider: Provider, address: str | None) -> str:
    """Return the address of an endpoint in the form that is stored; without one, the provider's own."""
    address = (address or "").strip() or provider.address
    if address is None:
        example = provider.address_example or "https://HOST/v1"
        raise BadModelAddress("", f"{provider.label} has no address of its own; give one such as {example}.")
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises if it is not a number
    except ValueError:  # whose text may have a part of a password in it
        raise BadModelAddress(address, "it is not a web address.") from None
    is_plain = len(address) <= MAX_ADDRESS and all("!" <= character <= "~" for character in address)
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        raise BadModelAddress(address, "it must begin with http:// or https://, such as http://127.0.0.1:11434.")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise BadModelAddress(address, "it must have no user name, password or #fragment. Give the key as `key`.")
    _check_query(provider, address, parts)
    check_host(parts.hostname)
    return _tidy(provider, parts)


def check_host(host: str) -> None:
    """Refuse a literal address that is never used. Names are resolved and checked when they are connected to."""
    try:
        literal = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return
    check_ip(host, literal)


def check_ip(host: str, address: Address, *, has_plain_key: bool = False) -> None:
    """Refuse to connect to an address; with `has_plain_key`, a key would be sent there without encryption."""
    for each in _forms(address):
        if any(each in network for network in _REFUSED if network.version == each.version):
            raise ModelAddressRefused(host, str(address))
    if has_plain_key and not is_private(address):
        raise KeyNeedsHttps(host)


def is_private(address: Address) -> bool:
    """Return whether an address is on this machine or in a private network."""
    inner = _forms(address)[-1]
    return any(inner in network for network in _PRIVATE if network.version == inner.version)


def is_plain_http(address: str) -> bool:
    return urlsplit(address).scheme == "http"


def _forms(address: Address) -> list[Address]:
    """Return an address, and the IPv4 address inside it if there is one."""
    if not isinstance(address, ipaddress.IPv6Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address, address.ipv4_mapped]
    if address in _NAT64:
        return [address, ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    if address in _SIX_TO_FOUR and address.sixtofour is not None:
        return [address, address.sixtofour]
    return [address]


def _check_query(provider: Provider, address: str, parts: SplitResult) -> None:
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    if parts.query and not (provider.id == "azure" and names == ["api-version"]):
        raise BadModelAddress(address, "it must have no ?query. Give the key as `key`.")


def _tidy(provider: Provider, parts: SplitResult) -> str:
    path = parts.path.rstrip("/")
    if provider.wire == "ollama":  # its own API is beside the compatible one, which people know the address of
        path = path.removesuffix("/v1").removesuffix("/api")
    if provider.id == "azure" and not path and not parts.query:
        path = "/openai/v1"
    if provider.wire in ("anthropic", "google"):  # their clients add it
        path = path.removesuffix("/v1").removesuffix("/v1beta")
    return parts._replace(scheme=parts.scheme.lower(), path=path).geturl()
