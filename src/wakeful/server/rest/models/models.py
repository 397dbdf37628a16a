"""Routes for models. Owners only; changes need a bearer token, or a login of the last ten minutes."""

import asyncio
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Annotated

from fastapi import APIRouter, Path, Query

from wakeful.domain.models.models import Model, read_tool_calls
from wakeful.domain.models.providers import PROVIDERS, Provider
from wakeful.domain.people.accounts import check_owner
from wakeful.server.auth import Admin
from wakeful.server.rest.models.shapes import (
    AbilitiesShape,
    DefaultRequest,
    DefaultShape,
    Found,
    FoundShape,
    Listed,
    ListedShape,
    ListRequest,
    ModelChange,
    ModelList,
    ModelShape,
    ModelTrialShape,
    NewModel,
    Providers,
    ProviderShape,
    TestRequest,
)
from wakeful.server.rest.shapes import Done
from wakeful.server.routes import DoorRoute
from wakeful.server.services import Services, ServicesDep

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
async def list_models_of_provider(caller: Admin, services: ServicesDep, asked: ListRequest) -> Listed:
    """Ask an endpoint for its models. Owners only.

    A browser can do this within ten minutes after its login.
    """
    found = await services.models.list_models(
        caller, name=asked.name, provider=asked.provider, address=asked.address, key=asked.key
    )
    return Listed(models=[ListedShape.model_validate(each) for each in found])


@router.post("/models/discover")
async def discover_models(caller: Admin, services: ServicesDep) -> Found:
    """Look for Ollama, LM Studio, vLLM and llama.cpp on this machine, at their usual ports. Owners only.

    Nothing that is found is used until it is added.
    """
    found = await services.models.discover(caller)
    return Found(servers=[FoundShape.model_validate(each) for each in found])


@router.post("/models/test")
async def test_model(caller: Admin, services: ServicesDep, asked: TestRequest) -> ModelTrialShape:
    """Send a test request to a model, with one tool, and save how it calls tools. Owners only.

    Returns within about 20 seconds; the outcome `waiting` means that the test goes on, and that the same request
    returns its result. It counts toward no budget.
    """
    return ModelTrialShape.model_validate(await services.models.test(caller, asked.model))


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
    services: ServicesDep,
    name: PathName,
    force: Annotated[bool, Query(description="Also if agents use it; their runs fail then.")] = False,
) -> Done:
    """Remove a model that no agent uses. Owners only.

    A browser can do this within ten minutes after its login.
    """
    await services.models.remove(caller, name, is_forced=force)
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
