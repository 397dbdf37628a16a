"""Ask providers for their models, and for the limits of one of them."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

from wakeful.domain.models.lists import MAX_LISTED, ListedModel, ModelNotListed, find_listed
from wakeful.domain.models.providers import CHAT, Listing, Provider
from wakeful.runtime.models.lists import hosted, local
from wakeful.runtime.models.lists.asking import SECONDS, Asking, EndpointFailed, asking

_LISTS: Mapping[Listing, Callable[[Asking], Awaitable[list[ListedModel]]]] = {
    "chat": hosted.list_chat,
    "ollama": local.list_ollama,
    "lmstudio": local.list_lmstudio,
    "llamacpp": hosted.list_chat,
    "anthropic": hosted.list_anthropic,
    "google": hosted.list_google,
    "bedrock": hosted.list_bedrock,
}
_FACTS: Mapping[Listing, Callable[[Asking, ListedModel], Awaitable[ListedModel]]] = {
    "ollama": local.inspect_ollama,
    "llamacpp": local.inspect_llamacpp,
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
        return await local.inspect_compatible(endpoint, model)


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
        await endpoint.get(f"{endpoint.address}{path}{quote(model)}")
    except EndpointFailed:
        return False
    return True


def _without_region(provider: Provider, model: str) -> str:
    prefix = next((each for each in _REGIONS if model.startswith(each)), "") if provider.id == "bedrock" else ""
    return model.removeprefix(prefix)
