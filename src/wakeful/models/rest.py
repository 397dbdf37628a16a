"""Routes for models. Owners only; changes need a bearer token, or a login of the last ten minutes."""

import asyncio
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import AwareDatetime, BeforeValidator, Field

from wakeful.core.identity import check_owner
from wakeful.core.records import Model, ToolCalls
from wakeful.http.auth import Admin
from wakeful.http.routes import DoorRoute
from wakeful.http.services import Need, Services, ServicesDep
from wakeful.http.shapes import Done, RequestBody, Shape, Sparse
from wakeful.models.providers import PROVIDERS, Provider
from wakeful.models.rules import (
    MAX_ID,
    MAX_OUTPUT,
    MAX_PRICE,
    MAX_WINDOW,
    MIN_OUTPUT,
    MIN_WINDOW,
    Problem,
    TrialOutcome,
    read_tool_calls,
    refuse_text,
)
from wakeful.models.service import ModelService

Name = Annotated[str, Field(max_length=64, description="A name of your own: a-z, 0-9, dot, hyphen, underscore.")]
ProviderId = Annotated[
    str, Field(max_length=64, description="The id of a provider, as `GET /models/providers` has it.")
]
ModelId = Annotated[str, Field(max_length=MAX_ID, description="The id of the model at its provider.")]
# Not validated here: a validation error would show the value, which is a secret.
Key = Annotated[str, Field(description="The key for this address. It is stored encrypted and never shown again.")]
AddressField = Annotated[str, Field(max_length=500, description="Base URL. Without it, the provider's own.")]
Window = Annotated[int, Field(ge=MIN_WINDOW, le=MAX_WINDOW, description="Tokens. Without it, as the provider states.")]
Output = Annotated[int, Field(ge=MIN_OUTPUT, le=MAX_OUTPUT, description="Tokens of one answer.")]
Price = Annotated[float, Field(ge=0, le=MAX_PRICE, description="Dollars per million tokens, if it is not known.")]
Written = Annotated[str, Field(min_length=1, max_length=300, description="A name, PROVIDER:MODEL, or `demo`.")]


class ProviderShape(Shape):
    """A provider, and what a model from it needs."""

    id: str
    label: str
    is_local: bool = Field(description="Usually runs on the owner's own machine.")
    needs_key: bool
    address: str | None = Field(description="Its own address. Null: an address must be given.")
    address_example: str | None
    key_page: str | None = Field(description="The web page where a person gets a key.")
    lists_models: bool = Field(description="`POST /models/list` returns its models.")
    example: str = Field(description="An example of a model's id.")
    note: str | None
    extra: str | None = Field(description="The extra of our package that it needs.")
    is_available: bool = Field(description="Whether what it needs is installed.")


class Providers(Shape):
    providers: list[ProviderShape]


class AbilitiesShape(Shape):
    """Limits and abilities that runs with a model use."""

    context_window: int
    is_window_known: bool = Field(description="False: the window is the server's default for unknown models.")
    output_limit: int | None = Field(description="Null: the provider's own limit.")
    tool_calls: ToolCalls
    images: bool | None
    thinking: bool | None


class ModelShape(Shape):
    """A model. Null fields were not given, and are asked of the provider or have defaults: see `abilities`."""

    name: str
    provider: str
    provider_label: str
    model: str
    address: str
    has_key: bool
    source: Literal["settings", "added"] = Field(description="Those of the settings file cannot be changed here.")
    is_default: bool
    used_by: list[str] = Field(
        description="Agents that name it, or allow it to their schedules, with their users: `Wakeful (Owner)`."
    )
    context_window: int | None
    output_limit: int | None
    input_price: float | None
    output_price: float | None
    tool_calls: ToolCalls | None
    images: bool | None
    thinking: bool | None
    abilities: AbilitiesShape
    tested_at: AwareDatetime | None = Field(description="When its way of calling tools was last tested.")
    created_at: AwareDatetime | None
    updated_at: AwareDatetime | None


class DefaultShape(Shape):
    """The model of agents without one of their own."""

    model: str
    source: Literal["settings", "chosen", "built_in"] = Field(
        description="`settings`: it is named in the settings and cannot be changed here. `built_in`: the demo model."
    )
    is_removed: bool = Field(
        description="It was chosen and then removed: runs of agents without a model of their own fail until another "
        "one is chosen."
    )


class ModelList(Shape):
    models: list[ModelShape]
    default: DefaultShape
    calls_as_text: list[str] = Field(
        description="Models that are marked `text`, as in 0.2, by their owner, the settings file or their last test, "
        "which counts as `none`."
    )


class ModelFields(RequestBody):
    """Fields that are left out stay unchanged, or are asked of the provider."""

    address: AddressField | None = None
    key: Key | None = None
    context_window: Window | None = None
    output_limit: Output | None = None
    input_price: Price | None = None
    output_price: Price | None = None
    tool_calls: Annotated[ToolCalls, BeforeValidator(refuse_text)] | None = None
    images: bool | None = None
    thinking: bool | None = None
    check: bool = Field(True, description="Ask the endpoint whether it has the model, and for its limits.")


class NewModel(ModelFields):
    provider: ProviderId
    model: ModelId
    name: Name | None = Field(None, description="Without it, one is made from the model's id.")
    make_default: bool = Field(False, description="Use it for agents without a model of their own.")


class ModelChange(ModelFields):
    """Another provider or address drops the key, unless a new one is given. Null removes a limit, price or ability."""

    provider: ProviderId | None = None
    model: ModelId | None = None


class ListRequest(RequestBody):
    """An endpoint: that of an added model (`name`), or one that is about to be added."""

    name: Name | None = None
    provider: ProviderId | None = None
    address: AddressField | None = None
    key: Key | None = None


class ListedShape(Sparse):
    """A model in a provider's list, with the facts that the provider states."""

    id: str
    label: str | None = None
    context_window: int | None = None
    output_limit: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    has_tools: bool | None = None
    images: bool | None = None
    thinking: bool | None = None


class Listed(Shape):
    models: list[ListedShape]


class FoundShape(Shape):
    """A server of local models that answers on this machine."""

    provider: str
    label: str
    address: str
    models: list[ListedShape]


class FoundServers(Shape):
    servers: list[FoundShape]


class TestRequest(RequestBody):
    model: Written | None = Field(None, description="A name, PROVIDER:MODEL, or `demo`. Null: the default model.")


class DefaultRequest(RequestBody):
    model: Written | None = Field(description="A name, PROVIDER:MODEL, or `demo`. Null: no choice.")


class ModelTrialShape(Sparse):
    """The result of a test request, which offers the model one tool."""

    model: str
    outcome: TrialOutcome = Field(description="`waiting`: no answer yet; ask again for the result of the same test.")
    seconds: float
    said: str | None = None
    reason: str | None = Field(None, description="Why there is no answer, in words.")
    problem: Problem | None = Field(None, description="The kind of failure.")
    tool_calls: ToolCalls | None = Field(None, description="How it called the tool.")
    tools_note: str | None = Field(None, description="The same in words.")
    is_loading: bool = Field(False, description="A local model that may still be loading.")
    context_window: int | None = None
    output_limit: int | None = None


router = APIRouter(route_class=DoorRoute, tags=["models"])

PathName = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]

_PACKAGES = {"bedrock": "boto3"}  # of extras
_NULLABLE = frozenset(
    {"context_window", "output_limit", "input_price", "output_price", "tool_calls", "images", "thinking"}
)


@router.get("/models")
async def list_models(caller: Admin, services: ServicesDep) -> ModelList:
    """List the models of this server, and the default one. Owners only."""
    models = await services.models.all(caller)
    agents = await services.models.agents_by_model()
    # Together: a local one is asked for its window.
    shown = await asyncio.gather(*(_to_body(services, model, agents) for model in models))
    calls_as_text = services.models.catalog.calls_as_text
    return ModelList(models=list(shown), default=_default(services), calls_as_text=calls_as_text)


@router.post("/models", status_code=201)
async def add_model(caller: Admin, services: ServicesDep, asked: NewModel) -> ModelShape:
    """Add a model. It uses its own key or none, never one of the server's environment. Owners only.

    A browser can do this within ten minutes after its login.
    """
    given = asked.to_changes(_NULLABLE)
    model = await services.models.add(
        caller, _fields(given), key=asked.key, is_checked=asked.check, is_default=asked.make_default
    )
    return await _shown(services, model)


@router.get("/models/providers")
async def list_providers(caller: Admin) -> Providers:
    """List the providers that models can be added from. Owners only."""
    check_owner(caller)
    return Providers(providers=[_to_provider(provider) for provider in PROVIDERS.values()])


@router.post("/models/list")
async def list_models_of_provider(caller: Admin, models: Need[ModelService], asked: ListRequest) -> Listed:
    """Ask an endpoint for its models. Owners only.

    A browser can do this within ten minutes after its login.
    """
    found = await models.list_models(
        caller, name=asked.name, provider=asked.provider, address=asked.address, key=asked.key
    )
    return Listed(models=[ListedShape.model_validate(each) for each in found])


@router.post("/models/discover")
async def discover_models(caller: Admin, models: Need[ModelService]) -> FoundServers:
    """Look for Ollama, LM Studio, vLLM and llama.cpp on this machine, at their usual ports. Owners only.

    Nothing that is found is used until it is added.
    """
    found = await models.discover(caller)
    return FoundServers(servers=[FoundShape.model_validate(each) for each in found])


@router.post("/models/test")
async def test_model(caller: Admin, models: Need[ModelService], asked: TestRequest) -> ModelTrialShape:
    """Send a test request to a model, with one tool, and save how it calls tools. Owners only.

    Returns within about 20 seconds; the outcome `waiting` means that the test goes on, and that the same request
    returns its result. It counts toward no budget.
    """
    return ModelTrialShape.model_validate(await models.test(caller, asked.model))


@router.put("/models/default")
async def choose_default_model(caller: Admin, services: ServicesDep, asked: DefaultRequest) -> DefaultShape:
    """Choose the model of agents without one of their own; null removes the choice. Owners only.

    A browser can do this within ten minutes after its login.
    """
    await services.models.choose_default(caller, asked.model)
    return _default(services)


@router.get("/models/{name}")
async def get_model(caller: Admin, services: ServicesDep, name: PathName) -> ModelShape:
    """Show a model. Owners only."""
    return await _shown(services, await services.models.get(caller, name))


@router.patch("/models/{name}")
async def change_model(caller: Admin, services: ServicesDep, name: PathName, asked: ModelChange) -> ModelShape:
    """Change a model. Another provider or address drops its key, unless a new one is given. Owners only.

    A browser can do this within ten minutes after its login.
    """
    changes = _fields(asked.to_changes(_NULLABLE))
    model = await services.models.change(caller, name, changes, key=asked.key, is_checked=asked.check)
    return await _shown(services, model)


@router.delete("/models/{name}")
async def remove_model(
    caller: Admin,
    models: Need[ModelService],
    name: PathName,
    force: Annotated[bool, Query(description="Also if agents use it; their runs fail then.")] = False,
) -> Done:
    """Remove a model that no agent uses. Owners only.

    A browser can do this within ten minutes after its login.
    """
    await models.remove(caller, name, is_forced=force)
    return Done()


def _fields(given: dict[str, object]) -> dict[str, object]:
    """Return the fields of a model in a request, without its key and the options."""
    return {name: value for name, value in given.items() if name not in ("key", "check", "make_default")}


def _default(services: Services) -> DefaultShape:
    catalog = services.models.catalog
    return DefaultShape(model=catalog.default, source=catalog.default_source, is_removed=catalog.is_default_removed)


async def _shown(services: Services, model: Model) -> ModelShape:
    return await _to_body(services, model, await services.models.agents_by_model())


async def _to_body(services: Services, model: Model, agents: Mapping[str, list[str]]) -> ModelShape:
    catalog = services.models.catalog
    test = catalog.last_test(model.name)
    return ModelShape.from_fields(
        model,
        provider_label=PROVIDERS[model.provider].label,
        has_key=model.has_key,
        tool_calls=model.tool_calls and read_tool_calls(model.tool_calls),
        is_default=catalog.default == model.name,
        used_by=agents.get(model.name, []),
        abilities=AbilitiesShape.model_validate(await services.models.abilities(model.name)),
        tested_at=None if test is None else test.tested_at,
    )


def _to_provider(provider: Provider) -> ProviderShape:
    package = _PACKAGES.get(provider.extra or "")
    return ProviderShape.from_fields(
        provider,
        lists_models=provider.listing is not None,
        is_available=package is None or find_spec(package) is not None,
    )
