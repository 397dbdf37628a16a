"""Routes for channels, which notify a person outside the inbox. Their addresses are never shown."""

from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import AwareDatetime, Field, StringConstraints

from wakeful.domain.inbox.channels import MAX_NAME
from wakeful.server.auth import Admin, Reader
from wakeful.server.rest.shapes import LABEL, Done, PathId, RequestBody, Shape, Sparse
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep

router = APIRouter(route_class=DoorRoute, tags=["channels"])

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_NAME, pattern=LABEL)]
# Not validated here: a validation error would show the value, which is a secret.
Url = Annotated[str, Field(description="An apprise URL, such as ntfy://TOPIC. It is never shown again.")]


class ChannelShape(Shape):
    """A channel. Of its URL only the host is shown."""

    id: str
    name: str
    url: str = Field(validation_alias="shown")
    enabled: bool
    last_sent_at: AwareDatetime | None
    last_error: str | None
    last_error_at: AwareDatetime | None
    created_at: AwareDatetime


class ChannelList(Shape):
    channels: list[ChannelShape]


class NewChannel(RequestBody):
    name: Name
    url: Url
    enabled: bool = True


class ChannelChange(RequestBody):
    """Fields that are left out stay unchanged."""

    name: Name | None = None
    url: Url | None = None
    enabled: bool | None = None


class TestShape(Sparse):
    """The result of a test message."""

    outcome: Literal["sent", "failed", "timed_out", "rate_limited"]
    reason: str | None = None


@router.get("/channels")
async def list_channels(caller: Reader, services: ServicesDep) -> ChannelList:
    """List the caller's channels."""
    return ChannelList(
        channels=[ChannelShape.model_validate(each) for each in await services.channels.of_user(caller.user.id)]
    )


@router.post("/channels", status_code=201)
async def add_channel(caller: Admin, services: ServicesDep, asked: NewChannel) -> ChannelShape:
    """Add a channel."""
    return ChannelShape.model_validate(
        await services.channels.add(caller.user.id, asked.name, asked.url, enabled=asked.enabled)
    )


@router.patch("/channels/{channel_id}")
async def change_channel(
    caller: Admin, services: ServicesDep, channel_id: PathId, asked: ChannelChange
) -> ChannelShape:
    """Change a channel's name or URL, or turn it off or on."""
    return ChannelShape.model_validate(await services.channels.change(channel_id, caller.user.id, asked.to_changes()))


@router.delete("/channels/{channel_id}")
async def delete_channel(caller: Admin, services: ServicesDep, channel_id: PathId) -> Done:
    """Delete a channel."""
    await services.channels.delete(channel_id, caller.user.id)
    return Done()


@router.post("/channels/{channel_id}/test")
async def test_channel(caller: Admin, services: ServicesDep, channel_id: PathId) -> TestShape:
    """Send a test message over a channel, and return the result."""
    delivery = await services.channels.test(channel_id, caller.user.id)
    return TestShape.model_validate({"outcome": delivery.outcome, "reason": delivery.reason})
