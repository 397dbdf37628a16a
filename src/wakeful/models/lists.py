"""Lists of models, and the limits of one of them, as each provider states them."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote as parse_quote

from wakeful.models.asking import (
    SECONDS,
    Asking,
    EndpointFailed,
    as_object,
    asking,
    flag,
    has,
    inner,
    number,
    objects,
    price,
    text,
)
from wakeful.models.providers import CHAT, Listing, Provider
from wakeful.models.rules import MAX_LISTED, ListedModel, ModelNotListed, find_listed

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
