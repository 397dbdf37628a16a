"""Lists of models, and the limits of one of them, as each provider states them; servers on this machine.

Answers are JSON of limited size, whose values may be missing or of another type.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast
from urllib.parse import quote as parse_quote

import httpx2
import orjson

from wakeful.core.errors import Unavailable
from wakeful.models.endpoint import is_page, key_headers, kind_of, make_client, origin_of, phrase
from wakeful.models.errors import is_untrusted, quote, words_of
from wakeful.models.providers import CHAT, PROVIDERS, Listing, Provider
from wakeful.models.rules import MAX_LISTED, FoundServer, ListedModel, ModelNotListed, Problem, find_listed

# Requests for lists and facts of models: JSON of limited size, whose values may be missing or of another type.


MAX_TEXT = 200  # characters of an id or a label


def objects(value: Any, name: str) -> list[Mapping[str, Any]] | None:
    """Return the objects in a list field; None if there is no such list."""
    listed: Any = cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None
    if not isinstance(listed, list):
        return None
    return [cast("Mapping[str, Any]", each) for each in cast("list[Any]", listed) if isinstance(each, Mapping)]


def as_object(value: Any) -> Mapping[str, Any]:
    """Return a JSON object; an empty one if it is something else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def inner(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return as_object(value.get(name))


def text(value: Any) -> str | None:
    """Return a printable text without blanks around it, if it is one of a reasonable length."""
    if not isinstance(value, str):
        return None
    plain = value.strip()
    return plain if plain and len(plain) <= MAX_TEXT and plain.isprintable() else None


def number(*values: Any) -> int | None:
    """Return the first of these that is a positive whole number."""
    for value in values:
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def price(value: Any) -> float | None:
    """Return dollars per million tokens, from dollars per token in a text."""
    try:
        per_token = float(value)
    except (TypeError, ValueError):
        return None
    return round(per_token * 1_000_000, 6) if 0 <= per_token < 1 else None


def flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def has(value: Any, word: str) -> bool | None:
    """Return whether a list contains a word; None if it is not a list."""
    return word in cast("Iterable[Any]", value) if isinstance(value, list) else None


MAX_BYTES = 16 * 1024 * 1024  # of a list; OpenRouter's has 2 MB
SECONDS = 15.0
_FIELDS: Mapping[Problem, str] = {"key": "key", "address": "address", "tls": "address", "not_a_model": "address"}


class EndpointFailed(Unavailable):
    """An endpoint that was asked about its models did not answer as it should."""

    code = "endpoint_failed"

    def __init__(self, message: str, kind: Problem, status: int | None = None) -> None:
        super().__init__(message, field=_FIELDS.get(kind))
        self.kind: Problem = kind
        self.status = status


class Asking:
    """One endpoint that is being asked about its models."""

    def __init__(self, provider: Provider, address: str, client: httpx2.AsyncClient, secrets: tuple[str, ...]) -> None:
        self._provider = provider
        self.address = address.partition("?")[0].rstrip("/")
        self._client = client
        self._secrets = secrets
        self._who = f"{provider.label} at {origin_of(address)}"
        self._advice = "Is it running?" if provider.is_local else "Check the address."

    @property
    def root(self) -> str:
        """Return the address without the path of the compatible API."""
        return self.address.removesuffix("/v1")

    async def get(self, url: str) -> Any:
        return await self._ask("GET", url)

    async def post(self, url: str, body: object) -> Any:
        return await self._ask("POST", url, orjson.dumps(body))

    def unreadable(self) -> EndpointFailed:
        return EndpointFailed(
            f"{self._who} sent a list of models that cannot be read. Is the address right?", "address"
        )

    async def _ask(self, method: str, url: str, content: bytes | None = None) -> Any:
        try:
            async with self._client.stream(method, url, content=content) as response:
                body = await _read(response)
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise EndpointFailed(f"{url!r} is not an address ({quote(str(error))}).", "address") from error
        except httpx2.TimeoutException as error:
            problem = f"{self._who} did not answer within {SECONDS:g} s. {self._advice}"
            raise EndpointFailed(problem, "timeout") from error
        except httpx2.TransportError as error:
            raise self._unreachable(error) from error
        if response.status_code != 200 or body is None:
            raise self._refusal(response, body)
        return body

    def _unreachable(self, error: httpx2.TransportError) -> EndpointFailed:
        if is_untrusted(error):
            return EndpointFailed(f"{self._who} has a certificate that is not trusted ({quote(str(error))}).", "tls")
        return EndpointFailed(f"{self._who} cannot be reached ({quote(str(error))}). {self._advice}", "address")

    def _refusal(self, response: httpx2.Response, body: object) -> EndpointFailed:
        status = response.status_code
        if response.is_redirect:
            to = origin_of(str(response.headers.get("location", "")))
            problem = f"{self._who} redirects to {quote(to)}, and redirects are not followed. Use that address."
            return EndpointFailed(problem, "address", status)
        if status == 200:
            problem = f"{self._who} answered with something that is not JSON, such as a web page. Is the address right?"
            return EndpointFailed(problem, "not_a_model", status)
        words = phrase(status) if body is None or is_page(body) else quote(words_of(body), hide=self._secrets)
        kind = kind_of(status, body or "")
        if kind == "key":
            given = "refused the key" if self._secrets else "needs a key"
            return EndpointFailed(f"{self._who} {given}: {words} (HTTP {status})", kind, status)
        hint = " Is the address right?" if kind == "address" else ""
        return EndpointFailed(f"{self._who} gave no list of its models: {words} (HTTP {status}).{hint}", kind, status)


@asynccontextmanager
async def asking(
    provider: Provider,
    address: str,
    key: str | None,
    *,
    seconds: float = SECONDS,
    is_checked: bool = True,
    is_loopback_only: bool = False,
) -> AsyncGenerator[Asking]:
    """Ask an endpoint; `is_checked` checks the addresses that are connected to."""
    client = make_client(
        address,
        {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "wakeful"}
        | _key_headers(provider, key),
        has_key=key is not None,
        is_checked=is_checked,
        is_loopback_only=is_loopback_only,
        timeout=httpx2.Timeout(seconds),
    )
    async with client:
        yield Asking(provider, address, client, (key,) if key else ())


def _key_headers(provider: Provider, key: str | None) -> dict[str, str]:
    if provider.wire == "anthropic":
        return {"anthropic-version": "2023-06-01"} | ({} if key is None else {"x-api-key": key})
    if provider.wire == "google":
        return {} if key is None else {"x-goog-api-key": key}
    return key_headers(provider.dialect, key)


async def _read(response: httpx2.Response) -> Any:
    """Return the JSON of a response; None if it is not JSON, or too large."""
    text = bytearray()
    async for chunk in response.aiter_bytes():
        text += chunk
        if len(text) > MAX_BYTES:
            return None
    try:
        return orjson.loads(bytes(text))
    except orjson.JSONDecodeError:
        return None if response.status_code == 200 else bytes(text[:2_000]).decode("utf-8", "replace")


# Recognise the program behind an OpenAI-compatible list of models by its form.
def provider_of(data: Sequence[Mapping[str, Any]]) -> str:
    """Return the provider whose list this looks like."""
    owners = {each.get("owned_by") for each in data}
    if "llamacpp" in owners:
        return "llamacpp"
    if "vllm" in owners or any("max_model_len" in each for each in data):
        return "vllm"
    if "library" in owners:
        return "ollama"
    return "lmstudio" if "organization_owner" in owners else CHAT


# Lists of hosted providers: those with chat completions, Anthropic, Google and Bedrock.


async def list_chat(asking: Asking) -> list[ListedModel]:
    """Read the list of an OpenAI-compatible endpoint, with what OpenRouter, Groq, Mistral and vLLM add to it."""
    listed = objects(await asking.get(f"{asking.address}/models"), "data")
    if listed is None:
        raise asking.unreadable()
    return [model for each in listed if (model := read_chat(each)) is not None]


def read_chat(each: Mapping[str, Any]) -> ListedModel | None:
    model = text(each.get("id"))
    can: Mapping[str, Any] = inner(each, "capabilities")
    if model is None or can.get("completion_chat") is False:
        return None
    prices, modalities = inner(each, "pricing"), inner(each, "architecture").get("input_modalities")
    parameters = each.get("supported_parameters")
    return ListedModel(
        id=model,
        label=text(each.get("display_name")) or text(each.get("name")),
        context_window=number(
            each.get("max_model_len"),
            each.get("context_window"),
            each.get("context_length"),
            each.get("max_context_length"),
        ),
        output_limit=number(
            each.get("max_completion_tokens"), inner(each, "top_provider").get("max_completion_tokens")
        ),
        input_price=price(prices.get("prompt")),
        output_price=price(prices.get("completion")),
        has_tools=has(parameters, "tools") if isinstance(parameters, list) else flag(can.get("function_calling")),
        images=has(modalities, "image") if isinstance(modalities, list) else flag(can.get("vision")),
        thinking=has(parameters, "reasoning"),
    )


async def list_anthropic(asking: Asking) -> list[ListedModel]:
    listed = objects(await asking.get(f"{asking.address}/v1/models?limit=1000"), "data")
    if listed is None:
        raise asking.unreadable()
    return [
        ListedModel(
            id=model,
            label=text(each.get("display_name")),
            context_window=number(each.get("max_input_tokens")),
            output_limit=number(each.get("max_tokens")),
            has_tools=True,
        )
        for each in listed
        if (model := text(each.get("id"))) is not None
    ]


async def list_google(asking: Asking) -> list[ListedModel]:
    listed = objects(await asking.get(f"{asking.address}/v1beta/models?pageSize=1000"), "models")
    if listed is None:
        raise asking.unreadable()
    return [
        ListedModel(
            id=model.removeprefix("models/"),
            label=text(each.get("displayName")),
            context_window=number(each.get("inputTokenLimit")),
            output_limit=number(each.get("outputTokenLimit")),
            thinking=flag(each.get("thinking")),
        )
        for each in listed
        if (model := text(each.get("name"))) is not None
        and has(each.get("supportedGenerationMethods"), "generateContent") is not False
    ]


async def list_bedrock(asking: Asking) -> list[ListedModel]:
    """Read Bedrock's list, which another host of the same region has."""
    address = asking.address.replace("://bedrock-runtime.", "://bedrock.", 1)
    listed = objects(await asking.get(f"{address}/foundation-models"), "modelSummaries")
    if listed is None:
        raise asking.unreadable()
    return [
        ListedModel(id=model, label=text(each.get("modelName")), images=has(each.get("inputModalities"), "IMAGE"))
        for each in listed
        if (model := text(each.get("modelId"))) is not None and has(each.get("outputModalities"), "TEXT") is not False
    ]


# Lists of local servers: Ollama, LM Studio and llama.cpp, and the context window that a model there really has.


# The window that Ollama is asked for unless the model or the owner says another: memory grows with it, and one of
# 128,000 tokens would not fit beside the model on most machines.
OLLAMA_WINDOW = 16_384
OLLAMA_DEFAULT = 4_096  # of a model that nobody asked for another window
LMSTUDIO_WINDOW = 4_096  # of a model that is not loaded: LM Studio loads it with this one
_NUM_CTX = re.compile(r"^\s*num_ctx\s+(\d+)\s*$", re.MULTILINE)


async def list_ollama(asking: Asking) -> list[ListedModel]:
    listed = objects(await asking.get(f"{asking.address}/api/tags"), "models")
    if listed is None:
        raise asking.unreadable()
    return [
        ListedModel(id=model, label=text(inner(each, "details").get("parameter_size")))
        for each in listed
        if (model := text(each.get("name")) or text(each.get("model"))) is not None
    ]


async def inspect_ollama(asking: Asking, listed: ListedModel, default: int = OLLAMA_WINDOW) -> ListedModel:
    """Read the window that the model runs with, or will run with because we ask for it, and its abilities."""
    shown = as_object(await asking.post(f"{asking.root}/api/show", {"model": listed.id}))
    facts = inner(shown, "model_info")
    own = number(*(value for name, value in facts.items() if name.endswith(".context_length")))
    parameters = _NUM_CTX.search(str(shown.get("parameters") or ""))
    in_force = await _loaded_window(asking, listed.id)
    asked = int(parameters[1]) if parameters else default
    can = shown.get("capabilities")
    return replace(
        listed,
        context_window=in_force or (min(asked, own) if own else asked),
        has_tools=has(can, "tools"),
        images=has(can, "vision"),
        thinking=has(can, "thinking"),
    )


async def inspect_compatible(asking: Asking, model: str) -> ListedModel:
    """Read the window of a model at a local endpoint whose program is not named: its list says what it is."""
    data = objects(await asking.get(f"{asking.address}/models"), "data") or []
    found = next((each for each in data if each.get("id") in (model, f"{model}:latest")), None)
    listed = (read_chat(found) if found is not None else None) or ListedModel(id=model)
    kind = provider_of(data)
    if kind == "ollama":  # through this API it cannot be asked for another window than its own default
        return await inspect_ollama(asking, listed, OLLAMA_DEFAULT)
    if kind == "llamacpp":
        return await inspect_llamacpp(asking, listed)
    if kind == "lmstudio":
        return next((each for each in await list_lmstudio(asking) if each.id == model), listed)
    return listed


async def _loaded_window(asking: Asking, model: str) -> int | None:
    """Return the window of a model that is loaded now: asking for another one would load it again."""
    try:
        running = objects(await asking.get(f"{asking.root}/api/ps"), "models") or []
    except EndpointFailed:  # an old version
        return None
    return next((number(each.get("context_length")) for each in running if each.get("name") == model), None)


async def list_lmstudio(asking: Asking) -> list[ListedModel]:
    try:
        listed = objects(await asking.get(f"{asking.root}/api/v0/models"), "data")
    except EndpointFailed as error:
        if error.status != 404:
            raise
        return await list_chat(asking)  # an old version
    if listed is None:
        raise asking.unreadable()
    return [
        ListedModel(
            id=model,
            context_window=number(
                each.get("loaded_context_length"), min(LMSTUDIO_WINDOW, number(each.get("max_context_length")) or 0)
            ),
            has_tools=has(each.get("capabilities"), "tool_use"),
            images=each.get("type") == "vlm",
        )
        for each in listed
        if (model := text(each.get("id"))) is not None and each.get("type") != "embeddings"
    ]


async def inspect_llamacpp(asking: Asking, listed: ListedModel) -> ListedModel:
    """Read the window that the server was started with, for one conversation."""
    props = as_object(await asking.get(f"{asking.root}/props"))
    settings, vision = inner(props, "default_generation_settings"), inner(props, "modalities").get("vision")
    return replace(
        listed,
        context_window=number(settings.get("n_ctx"), listed.context_window),
        images=vision if isinstance(vision, bool) else None,
    )


_LISTS: Mapping[Listing, Callable[[Asking], Awaitable[list[ListedModel]]]] = {
    "chat": list_chat,
    "ollama": list_ollama,
    "lmstudio": list_lmstudio,
    "llamacpp": list_chat,
    "anthropic": list_anthropic,
    "google": list_google,
    "bedrock": list_bedrock,
}
_FACTS: Mapping[Listing, Callable[[Asking, ListedModel], Awaitable[ListedModel]]] = {
    "ollama": inspect_ollama,
    "llamacpp": inspect_llamacpp,
}
_OTHER_USES = (  # ids of OpenAI's models that are not for conversations
    "babbage",
    "chatgpt-image",
    "dall-e",
    "davinci",
    "gpt-audio",
    "gpt-image",
    "gpt-realtime",
    "omni-moderation",
    "sora",
    "text-embedding",
    "tts",
    "whisper",
)
_REGIONS = ("us.", "us-gov.", "eu.", "apac.", "global.")  # prefixes of Bedrock's ids that span regions


async def list_models(provider: Provider, address: str, key: str | None) -> list[ListedModel]:
    """Return the models that an endpoint offers for conversations, by id; none if its provider has no list."""
    if provider.listing is None:
        return []
    async with asking(provider, address, key) as endpoint:
        found = await _LISTS[provider.listing](endpoint)
    fitting = {model.id: model for model in found if not model.id.startswith(_OTHER_USES)}
    return [fitting[name] for name in sorted(fitting)][:MAX_LISTED]


async def inspect(
    provider: Provider, address: str, key: str | None, model: str, *, seconds: float = SECONDS, is_checked: bool = True
) -> ListedModel:
    """Return what an endpoint says about one model; raise ModelNotListed if it does not have it."""
    if provider.listing is None:
        return ListedModel(id=model)
    async with asking(provider, address, key, seconds=seconds, is_checked=is_checked) as endpoint:
        listed = await _find(endpoint, provider, model)
        more = _FACTS.get(provider.listing)
        return listed if more is None else await more(endpoint, listed)


async def inspect_local(provider: Provider, address: str, key: str | None, model: str, **how: Any) -> ListedModel:
    """Return what a local endpoint says about one model, also if its program is not named."""
    if provider.id != CHAT:
        return await inspect(provider, address, key, model, **how)
    async with asking(provider, address, key, **how) as endpoint:
        return await inspect_compatible(endpoint, model)


async def _find(endpoint: Asking, provider: Provider, model: str) -> ListedModel:
    assert provider.listing is not None
    try:
        listed = await _LISTS[provider.listing](endpoint)
    except EndpointFailed as error:
        if provider.id == CHAT and error.status in (404, 405):  # a compatible endpoint need not have a list
            return ListedModel(id=model)
        raise
    if provider.id == "llamacpp" and len(listed) == 1:  # it runs one model, and answers under any name
        return listed[0]
    try:
        return find_listed(provider.label, _without_region(provider, model), listed)
    except ModelNotListed:
        if not provider.is_local and await _is_alias(endpoint, provider, model):
            return ListedModel(id=model)
        raise


async def _is_alias(endpoint: Asking, provider: Provider, model: str) -> bool:
    """Return whether a provider knows a name that is not in its list, such as `claude-sonnet-4-5`."""
    path = {"anthropic": "/v1/models/", "google": "/v1beta/models/", "chat": "/models/"}.get(provider.wire)
    if path is None:
        return False
    try:
        await endpoint.get(f"{endpoint.address}{path}{parse_quote(model)}")
    except EndpointFailed:
        return False
    return True


def _without_region(provider: Provider, model: str) -> str:
    prefix = next((each for each in _REGIONS if model.startswith(each)), "") if provider.id == "bedrock" else ""
    return model.removeprefix(prefix)


# Look for servers of local models on this machine: one list request to each usual port, without a key.
#
# What answers is recognised by the form of its list, not by its port. It is only offered to the owner.


OLLAMA_PORT = 11_434
DISCOVER_SECONDS = 1.5  # a server on this machine answers at once, or is not there


async def discover(ports: Sequence[int]) -> list[FoundServer]:
    """Return the servers that answer on loopback at these ports."""
    found = await asyncio.gather(*(_probe(port) for port in dict.fromkeys(ports)))
    return [server for server in found if server is not None]


async def _probe(port: int) -> FoundServer | None:
    origin = f"http://127.0.0.1:{port}"
    path = "/api/tags" if port == OLLAMA_PORT else "/v1/models"
    try:
        async with asking(PROVIDERS[CHAT], origin, None, seconds=DISCOVER_SECONDS, is_loopback_only=True) as endpoint:
            return _recognise(origin, await endpoint.get(f"{origin}{path}"))
    except EndpointFailed:
        return None


def _recognise(origin: str, body: Any) -> FoundServer | None:
    tags = objects(body, "models")
    data = objects(body, "data")
    if data is None and tags and all("digest" in each for each in tags):
        names = [name for each in tags if (name := text(each.get("name"))) is not None]
        return _server("ollama", origin, [ListedModel(id=name) for name in names])
    if not data:
        return None
    provider = provider_of(data)
    models = [model for each in data if (model := read_chat(each)) is not None]
    return _server(provider, origin if provider == "ollama" else f"{origin}/v1", models)


def _server(provider: str, address: str, models: list[ListedModel]) -> FoundServer | None:
    if not models:
        return None
    return FoundServer(provider=provider, label=PROVIDERS[provider].label, address=address, models=models[:MAX_LISTED])
