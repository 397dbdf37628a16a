"""The frames of the sockets as JSON Schema, generated from their types."""

from functools import cache
from typing import Any

from fastapi import APIRouter
from pydantic import ConfigDict, TypeAdapter

from wakeful.domain.events import SessionFrame, UserFrame, wire_name
from wakeful.server.auth import Reader
from wakeful.server.routes import DoorRoute

router = APIRouter(route_class=DoorRoute, tags=["sockets"])

_NAMES = ConfigDict(alias_generator=wire_name)


@cache
def describe_frames() -> dict[str, Any]:
    """Return the JSON Schema of every frame, by socket."""
    return {
        "session": TypeAdapter[Any](SessionFrame, config=_NAMES).json_schema(mode="serialization"),
        "events": TypeAdapter[Any](UserFrame, config=_NAMES).json_schema(mode="serialization"),
    }


@router.get("/ws/schema")
async def frames_schema(_caller: Reader) -> dict[str, Any]:
    """Describe the frames of `/ws/sessions/{id}` and `/ws/events` as JSON Schema."""
    return describe_frames()
