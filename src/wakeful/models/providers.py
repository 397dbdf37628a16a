"""The table of providers that models can be used from: address, key, wire and list of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

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
