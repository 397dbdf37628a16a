"""Routes for channels and push messages."""

from typing import Annotated, Literal

from fastapi import APIRouter, Request
from pydantic import AwareDatetime, Field, StringConstraints

from wakeful.http.auth import Admin, Reader
from wakeful.http.routes import DoorRoute
from wakeful.http.services import Need
from wakeful.http.shapes import LABEL, Done, PathId, RequestBody, Shape, Sparse
from wakeful.outgoing.channels import Channels
from wakeful.outgoing.push import Push
from wakeful.outgoing.rules import MAX_NAME, read_offer

# Routes for channels, which notify a person outside the inbox. Their addresses are never shown.


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
async def list_channels(caller: Reader, channels: Need[Channels]) -> ChannelList:
    """List the caller's channels."""
    return ChannelList(channels=[ChannelShape.model_validate(each) for each in await channels.of_user(caller.user.id)])


@router.post("/channels", status_code=201)
async def add_channel(caller: Admin, channels: Need[Channels], asked: NewChannel) -> ChannelShape:
    """Add a channel."""
    return ChannelShape.model_validate(await channels.add(caller.user.id, asked.name, asked.url, enabled=asked.enabled))


@router.patch("/channels/{channel_id}")
async def change_channel(
    caller: Admin, channels: Need[Channels], channel_id: PathId, asked: ChannelChange
) -> ChannelShape:
    """Change a channel's name or URL, or turn it off or on."""
    return ChannelShape.model_validate(await channels.change(channel_id, caller.user.id, asked.to_changes()))


@router.delete("/channels/{channel_id}")
async def delete_channel(caller: Admin, channels: Need[Channels], channel_id: PathId) -> Done:
    """Delete a channel."""
    await channels.delete(channel_id, caller.user.id)
    return Done()


@router.post("/channels/{channel_id}/test")
async def test_channel(caller: Admin, channels: Need[Channels], channel_id: PathId) -> TestShape:
    """Send a test message over a channel, and return the result."""
    result = await channels.test(channel_id, caller.user.id)
    return TestShape.model_validate({"outcome": result.outcome, "reason": result.reason})


# ── Push messages to browsers: endpoints and keys are never shown ────────────────────────────────────────────────────

push_router = APIRouter(route_class=DoorRoute, tags=["push"])

# Not validated here: a validation error would show the value, which is a secret.
Secret = Annotated[str, Field(description="From the browser's PushSubscription. It is never shown again.")]


class BrowserShape(Shape):
    """A browser that gets push messages. Of its endpoint only the host is shown."""

    id: str
    name: str
    service: str = Field(description="The host of the browser's push service.")
    last_sent_at: AwareDatetime | None = Field(description="When a message was last handed to the push service.")
    last_error: str | None
    last_error_at: AwareDatetime | None
    created_at: AwareDatetime


class Browsers(Shape):
    public_key: str | None = Field(description="The `applicationServerKey` to subscribe with; null if it is unusable.")
    problem: str | None = Field(description="Why no browser can be added.")
    browsers: list[BrowserShape]


class NewBrowser(RequestBody):
    """The parts of a browser's `PushSubscription`."""

    name: Name
    endpoint: Secret
    p256dh: Secret
    auth: Secret


class PushTestShape(Sparse):
    """The result of a test message. `handed_over`: the push service has it; the browser may get it later."""

    outcome: Literal["handed_over", "gone", "failed", "timed_out", "rate_limited"]
    reason: str | None = None


@push_router.get("/push-subscriptions")
async def list_browsers(caller: Reader, push: Need[Push]) -> Browsers:
    """List the caller's browsers that get push messages, and the key to subscribe with."""
    offer = await push.offer()
    return Browsers(
        public_key=offer.public_key,
        problem=offer.problem,
        browsers=[BrowserShape.model_validate(each) for each in await push.of_user(caller.user.id)],
    )


@push_router.post("/push-subscriptions", status_code=201)
async def subscribe(request: Request, caller: Admin, push: Need[Push], asked: NewBrowser) -> BrowserShape:
    """Have a browser get the caller's notifications as push messages, as long as the caller's login or token is valid.

    Repeat it to renew the subscription: it belongs to who subscribed last in that browser.
    """
    offered = read_offer(asked.endpoint, asked.p256dh, asked.auth)
    origin = request.headers.get("origin", "")
    contact = origin if origin.startswith("https://") else None
    made = await push.subscribe(caller.user.id, caller.token_id, asked.name, offered, contact)
    return BrowserShape.model_validate(made)


@push_router.delete("/push-subscriptions/{subscription_id}")
async def unsubscribe(caller: Admin, push: Need[Push], subscription_id: PathId) -> Done:
    """Stop push messages to a browser."""
    await push.delete(subscription_id, caller.user.id)
    return Done()


@push_router.post("/push-subscriptions/{subscription_id}/test")
async def test_browser(caller: Admin, push: Need[Push], subscription_id: PathId) -> PushTestShape:
    """Send a test message to a browser, and return what its push service did."""
    result = await push.test(subscription_id, caller.user.id)
    return PushTestShape.model_validate({"outcome": result.outcome, "reason": result.reason})
