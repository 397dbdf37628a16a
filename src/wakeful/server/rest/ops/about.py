"""Version, model, store and confinement of this server."""

from typing import Literal

from fastapi import APIRouter, Request

from wakeful.domain.agents.confinement import Confined
from wakeful.server.auth import Reader
from wakeful.server.rest.shapes import Shape
from wakeful.server.routes import DoorRoute

router = APIRouter(route_class=DoorRoute, tags=["health"])


class About(Shape):
    """A server, as far as everyone who uses it may know it."""

    version: str
    model: str  # of agents that name none
    is_demo: bool  # it is the built-in model, which is not an LLM
    store: Literal["sqlite", "postgresql"]
    shell: Confined  # how commands of the toolset `shell` are run on this node


@router.get("/about")
async def about(_caller: Reader, request: Request) -> About:
    """Say what is running: which version, with which model, on which store, and how commands are confined."""
    return request.app.state.about
