"""Channels: how a person is reached outside of the inbox. Their addresses come in and never go out."""

from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import AwareDatetime, Field, StringConstraints

from wakeful.domain.inbox.channels import MAX_NAME
from wakeful.domain.types import Channel
from wakeful.server.auth import Admin, Reader
from wakeful.server.rest.shapes import LABEL, Done, PathId, RequestBody, Shape, Sparse
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep

router = APIRouter(route_class=DoorRoute, tags=["channels"])

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_NAME, pattern=LABEL)]
# Without rules of its own: what breaks those of a shape is quoted in the refusal, and this is a secret.
Url = Annotated[str, Field(description="As apprise writes it, such as ntfy://TOPIC. It is never shown again.")]


class ChannelShape(Shape):
    """A channel. Of its address only where it goes is shown."""

    id: str
    name: str
    url: str
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
    """The result of sending over the channel."""

    outcome: Literal["sent", "failed", "timed_out", "rate_limited"]
    reason: str | None = None


@router.get("/channels")
async def list_channels(caller: Reader, services: ServicesDep) -> ChannelList:
    """List the caller's channels."""
    return ChannelList(channels=[_shape(each) for each in await services.channels.of_user(caller.user.id)])


@router.post("/channels", status_code=201)
async def add_channel(caller: Admin, services: ServicesDep, asked: NewChannel) -> ChannelShape:
    """Add a channel that goes over the network."""
    return _shape(await services.channels.add(caller.user.id, asked.name, asked.url, enabled=asked.enabled))


@router.patch("/channels/{channel_id}")
async def change_channel(
    caller: Admin, services: ServicesDep, channel_id: PathId, asked: ChannelChange
) -> ChannelShape:
    """Rename a channel, give it another address, or turn it off and on."""
    changes = {name: value for name in asked.model_fields_set if (value := getattr(asked, name)) is not None}
    return _shape(await services.channels.change(channel_id, caller.user.id, changes))


@router.delete("/channels/{channel_id}")
async def delete_channel(caller: Admin, services: ServicesDep, channel_id: PathId) -> Done:
    """Delete a channel."""
    await services.channels.delete(channel_id, caller.user.id)
    return Done()


@router.post("/channels/{channel_id}/test")
async def test_channel(caller: Admin, services: ServicesDep, channel_id: PathId) -> TestShape:
    """Send a few words over a channel, and say what it really did."""
    delivery = await services.channels.test(channel_id, caller.user.id)
    return TestShape(outcome=delivery.outcome, reason=delivery.reason)


def _shape(channel: Channel) -> ChannelShape:
    return ChannelShape(
        id=channel.id,
        name=channel.name,
        url=channel.shown,
        enabled=channel.enabled,
        last_sent_at=channel.last_sent_at,
        last_error=channel.last_error,
        last_error_at=channel.last_error_at,
        created_at=channel.created_at,
    )
