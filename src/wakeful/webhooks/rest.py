"""Routes for outgoing webhooks, which send events to other systems. Their addresses are never shown."""

from typing import Annotated, Any, Self

import orjson
from fastapi import APIRouter
from pydantic import AwareDatetime, Field

from wakeful.core.records import Outgoing, OutgoingStatus, Webhook, WebhookEvent
from wakeful.http.auth import Admin, Reader
from wakeful.http.routes import DoorRoute
from wakeful.http.services import Need
from wakeful.http.shapes import LABEL, Done, Id, Most, Page, PathId, RequestBody, Shape, Sparse, next_page, read_page
from wakeful.webhooks import rules
from wakeful.webhooks.service import RevealedWebhook, Webhooks

router = APIRouter(route_class=DoorRoute, tags=["webhooks"])

Name = Annotated[str, Field(min_length=1, max_length=rules.MAX_NAME, pattern=LABEL)]
# Not validated here: a validation error would show the value, which may hold a secret.
Url = Annotated[str, Field(description="An http:// or https:// address. Only its host is shown again.")]
Events = Annotated[
    list[WebhookEvent], Field(min_length=1, max_length=len(rules.EVENTS), description="The events that it gets.")
]
AgentId = Annotated[Id, Field(description="Only events of this agent. Null: of all of yours.")]


class WebhookShape(Shape):
    """An outgoing webhook. Of its address only the host is shown."""

    id: str
    name: str
    url: str
    agent_id: str | None
    events: list[str]
    enabled: bool
    old_secret_until: AwareDatetime | None = Field(
        description="Until when messages are signed with the secret before the last rotation too."
    )
    failing_since: AwareDatetime | None
    last_sent_at: AwareDatetime | None
    last_error: str | None
    last_error_at: AwareDatetime | None
    created_at: AwareDatetime
    updated_at: AwareDatetime

    @classmethod
    def of(cls, webhook: Webhook) -> Self:
        return cls.model_validate(_fields(webhook))


class RevealedWebhookShape(WebhookShape):
    """A webhook with the secret of its signatures, which is not shown again."""

    secret: str

    @classmethod
    def with_secret(cls, revealed: RevealedWebhook) -> Self:
        return cls.model_validate({**_fields(revealed.webhook), "secret": revealed.secret})


class WebhookList(Shape):
    webhooks: list[WebhookShape]


class NewWebhook(RequestBody):
    name: Name
    url: Url
    events: Events
    agent_id: AgentId | None = None
    enabled: bool = True


class WebhookChange(RequestBody):
    """Fields that are left out stay unchanged."""

    name: Name | None = None
    url: Url | None = None
    events: Events | None = None
    agent_id: AgentId | None = None
    enabled: bool | None = None


class WebhookDeliveryShape(Shape):
    """An event for a webhook, and how sending it went. `id` is the `webhook-id` that the receiver gets."""

    id: str
    event: str
    status: OutgoingStatus
    attempts: int
    next_at: AwareDatetime | None = Field(description="When it is sent next; null: no more.")
    last_status: int | None = Field(description="The HTTP status of the last answer.")
    last_error: str | None
    created_at: AwareDatetime
    settled_at: AwareDatetime | None
    data: dict[str, Any]

    @classmethod
    def of(cls, message: Outgoing) -> Self:
        return cls.from_fields(message, data=orjson.loads(message.body))


class WebhookDeliveryList(Sparse):
    deliveries: list[WebhookDeliveryShape]
    next: str | None = None


@router.get("/webhooks")
async def list_webhooks(caller: Reader, webhooks: Need[Webhooks]) -> WebhookList:
    """List the caller's outgoing webhooks."""
    return WebhookList(webhooks=[WebhookShape.of(each) for each in await webhooks.of_user(caller.user.id)])


@router.post("/webhooks", status_code=201)
async def add_webhook(caller: Admin, webhooks: Need[Webhooks], asked: NewWebhook) -> RevealedWebhookShape:
    """Add an outgoing webhook. The secret of its signatures is in the response, and never shown again."""
    fields = {"name": asked.name, "events": tuple(asked.events), "agent_id": asked.agent_id, "enabled": asked.enabled}
    return RevealedWebhookShape.with_secret(await webhooks.add(caller.user.id, asked.url, fields))


@router.get("/webhooks/{webhook_id}")
async def get_webhook(caller: Reader, webhooks: Need[Webhooks], webhook_id: PathId) -> WebhookShape:
    """Return an outgoing webhook."""
    return WebhookShape.of(await webhooks.get(webhook_id, caller.user.id))


@router.patch("/webhooks/{webhook_id}")
async def change_webhook(
    caller: Admin, webhooks: Need[Webhooks], webhook_id: PathId, asked: WebhookChange
) -> WebhookShape:
    """Change an outgoing webhook, or switch it off or on. Off, it gives up what waits to be sent."""
    changes = asked.to_changes(nullable=("agent_id",))
    if "events" in changes:
        changes["events"] = tuple(changes["events"])
    return WebhookShape.of(await webhooks.change(webhook_id, caller.user.id, changes))


@router.delete("/webhooks/{webhook_id}")
async def delete_webhook(caller: Admin, webhooks: Need[Webhooks], webhook_id: PathId) -> Done:
    """Delete a webhook with its deliveries."""
    await webhooks.delete(webhook_id, caller.user.id)
    return Done()


@router.post("/webhooks/{webhook_id}/rotate")
async def rotate_webhook(caller: Admin, webhooks: Need[Webhooks], webhook_id: PathId) -> RevealedWebhookShape:
    """Replace the secret of a webhook. For 24 hours messages are signed with the one before too."""
    return RevealedWebhookShape.with_secret(await webhooks.rotate(webhook_id, caller.user.id))


@router.post("/webhooks/{webhook_id}/test")
async def test_webhook(caller: Admin, webhooks: Need[Webhooks], webhook_id: PathId) -> WebhookDeliveryShape:
    """Send a test message, also if the webhook is off, and return the result."""
    return WebhookDeliveryShape.of(await webhooks.test(webhook_id, caller.user.id))


@router.get("/webhooks/{webhook_id}/deliveries")
async def list_webhook_deliveries(
    caller: Reader, webhooks: Need[Webhooks], webhook_id: PathId, page: Page = None, most: Most = 50
) -> WebhookDeliveryList:
    """List the deliveries of a webhook of the last 30 days, the latest first."""
    found = await webhooks.deliveries(webhook_id, caller.user.id, before=read_page(page), most=most)
    return WebhookDeliveryList(
        deliveries=[WebhookDeliveryShape.of(each) for each in found],
        next=next_page(found, most, lambda each: (each.created_at, each.id)),
    )


@router.post("/webhooks/{webhook_id}/deliveries/{webhook_delivery_id}/replay", status_code=202)
async def replay_delivery(
    caller: Admin, webhooks: Need[Webhooks], webhook_id: PathId, webhook_delivery_id: PathId
) -> WebhookDeliveryShape:
    """Send a delivery again, under its own id."""
    return WebhookDeliveryShape.of(await webhooks.replay(webhook_id, caller.user.id, webhook_delivery_id))


def _fields(webhook: Webhook) -> dict[str, Any]:
    return {
        **{name: getattr(webhook, name) for name in WebhookShape.model_fields if hasattr(webhook, name)},
        "url": webhook.shown,
        "old_secret_until": webhook.old_until,
    }
