"""Lists of local servers: Ollama, LM Studio and llama.cpp, and the context window that a model there really has."""

import re
from dataclasses import replace

from wakeful.domain.models.lists import ListedModel
from wakeful.runtime.models.lists.asking import Asking, EndpointFailed
from wakeful.runtime.models.lists.hosted import list_chat, read_chat
from wakeful.runtime.models.lists.reading import as_object, has, inner, number, objects, text
from wakeful.runtime.models.lists.recognise import provider_of

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
