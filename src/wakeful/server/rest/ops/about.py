"""Version, model, store and confinement of this server."""

from typing import Literal

from fastapi import APIRouter, Request

from wakeful.domain.agents.confinement import Confined
from wakeful.server.auth import Reader
from wakeful.server.rest.shapes import Shape
from wakeful.server.routes import DoorRoute

router = APIRouter(route_class=DoorRoute, tags=["health"])


class About(Shape):
    """A server, as far as all its users may know."""

    version: str
    model: str  # of agents without one of their own
    is_demo: bool  # the model is the built-in demo, which is not an LLM
    store: Literal["sqlite", "postgresql"]
    shell: Confined  # how commands of the toolset `shell` are run on this node


@router.get("/about")
async def about(_caller: Reader, request: Request) -> About:
    """Show the version, the model, the store, and how shell commands are confined."""
    return request.app.state.about
