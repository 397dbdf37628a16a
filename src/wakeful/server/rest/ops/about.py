"""Version, model, store and confinement of this server."""

from typing import Literal

from fastapi import APIRouter, Request

from wakeful.domain.agents.confinement import Confined
from wakeful.domain.models.names import DEMO
from wakeful.server.auth import Reader
from wakeful.server.rest.shapes import Shape
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep

router = APIRouter(route_class=DoorRoute, tags=["health"])


class Fixed(Shape):
    """The facts about a server that do not change while it runs."""

    version: str
    store: Literal["sqlite", "postgresql"]
    shell: Confined  # how commands of the toolset `shell` are run on this node


class About(Fixed):
    """A server, as far as all its users may know."""

    model: str  # of agents without one of their own
    is_demo: bool  # the model is the built-in demo, which is not an LLM
    is_model_removed: bool  # runs of agents without a model of their own fail
    models: list[str]  # names of the models that agents can have, besides PROVIDER:MODEL and `demo`


@router.get("/about")
async def about(_caller: Reader, request: Request, services: ServicesDep) -> About:
    """Show the version, the model, the store, and how shell commands are confined."""
    fixed: Fixed = request.app.state.about
    catalog = services.models.catalog
    return About(
        **fixed.model_dump(),
        model=catalog.default,
        is_demo=catalog.default == DEMO,
        is_model_removed=catalog.is_default_removed,
        models=catalog.names,
    )
