"""Lists of hosted providers: those with chat completions, Anthropic, Google and Bedrock."""

from collections.abc import Mapping
from typing import Any

from wakeful.domain.models.lists import ListedModel
from wakeful.runtime.models.lists.asking import Asking
from wakeful.runtime.models.lists.reading import flag, has, inner, number, objects, price, text


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
