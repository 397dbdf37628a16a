"""Outgoing webhooks: signed messages about events to other systems, sent again if they do not answer."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType

from wakeful.core import ids
from wakeful.core.addresses import is_web_address
from wakeful.core.errors import Conflict, Invalid, LimitReached
from wakeful.core.records import Webhook, WebhookEvent, WebhookMessage
from wakeful.core.texts import check_text
from wakeful.core.types import Notice
from wakeful.outgoing.rules import Reply
from wakeful.notices.texts import MAX_TITLE

EVENTS: Mapping[WebhookEvent, str] = MappingProxyType(
    {
        "run.finished": "A run finished, or was stopped",
        "run.failed": "A run failed, or was interrupted",
        "wake.missed": "A planned time was missed",
        "loop.ended": "An agent scheduled no next run",
        "notification": "Something is in the inbox",
    }
)
TEST = "test"

MAX_WEBHOOKS = 20  # of one person
MAX_NAME = 100
MAX_URL = 2_000
# Waits between the attempts: eight within a day, as Standard Webhooks recommends.
LADDER = tuple(timedelta(seconds=seconds) for seconds in (5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 8 * 3600, 8 * 3600))
OFF_AFTER = timedelta(days=5)  # of failures without a success
OLD_SECRET = timedelta(hours=24)  # for which messages are signed with the secret before a rotation too
MAX_WAIT = timedelta(days=1)  # as a receiver may ask for
_GONE = 410
_HIDDEN = "****"


class WebhookNameTaken(Conflict):
    code = "webhook_name_taken"

    def __init__(self, name: str) -> None:
        super().__init__(f"You have a webhook named {name!r} already. Choose another name.", field="name")


class TooManyWebhooks(LimitReached):
    code = "too_many_webhooks"
    text = f"You have {MAX_WEBHOOKS} webhooks, which is the limit. Delete one first."


class WebhookOff(Conflict):
    code = "webhook_off"

    def __init__(self, name: str) -> None:
        super().__init__(f"The webhook {name!r} is off, so nothing is sent. Switch it on first.")


class BadWebhookAddress(Invalid):
    """An address that cannot be sent to. The message does not contain it, because it may hold a secret."""

    code = "bad_webhook_address"
    field = "url"
    text = (
        "`url` must be an http:// or https:// address without user name, password and #, in ASCII without blanks, "
        f"{MAX_URL:,} characters at most."
    )


def check_url(url: str) -> str:
    """Return an address without blanks around it, or refuse it."""
    url = url.strip()
    if not is_web_address(url, MAX_URL):
        raise BadWebhookAddress
    return url


def check(webhook: Webhook) -> None:
    """Refuse a webhook with values that cannot be used."""
    name = check_text("name", webhook.name, MAX_NAME, is_one_line=True)
    if name != name.strip():
        raise Invalid(f"`name` must have no blanks around it, got {name!r}.", field="name")
    if not webhook.events:
        raise Invalid(f"`events` must name at least one of: {', '.join(EVENTS)}.", field="events")


def record_attempt(
    message: WebhookMessage, webhook: Webhook, reply: Reply, now: datetime
) -> tuple[WebhookMessage, Webhook]:
    """Record the result of an attempt: sent, tried again later, or given up; a webhook that fails for days is off."""
    tried = replace(
        message, attempts=message.attempts + 1, taken_at=None, last_status=reply.status, last_error=reply.error
    )
    if reply.error is None:
        sent = replace(tried, status="sent", next_at=None, settled_at=now)
        return sent, replace(webhook, failing_since=None, last_sent_at=now, last_error=None, last_error_at=None)
    failed = replace(webhook, last_error=reply.error, last_error_at=now)
    if message.event != TEST:  # a test by hand says nothing about events
        failing_since = webhook.failing_since or now
        is_over = reply.status == _GONE or now - failing_since >= OFF_AFTER
        failed = replace(failed, failing_since=failing_since, enabled=webhook.enabled and not is_over)
    if message.event == TEST or not failed.enabled or tried.attempts > len(LADDER):
        return replace(tried, status="failed", next_at=None, settled_at=now), failed
    wait = max(LADDER[tried.attempts - 1], min(timedelta(seconds=reply.retry_after or 0), MAX_WAIT))
    return replace(tried, next_at=now + wait), failed


def replay(message: WebhookMessage, now: datetime) -> WebhookMessage:
    """Return a message that is sent again, under its own id."""
    return replace(message, status="pending", attempts=0, next_at=now, taken_at=None, settled_at=None)


def switched_off(webhook: Webhook, now: datetime) -> Notice:
    """A webhook was switched off after days of failures."""
    return Notice(
        id=ids.new_id(now),
        user_id=webhook.user_id,
        agent_id=webhook.agent_id,
        code="webhook_off",
        title=f"The webhook {webhook.name} is off"[:MAX_TITLE],
        body=(
            f"Nothing reached {webhook.shown} any more: {webhook.last_error}. What waited for it was given up. When "
            "the receiver works again, switch the webhook on; its list of deliveries sends single ones again."
        ),
        once_key=f"webhook_off:{webhook.id}:{now.isoformat()}",
        created_at=now,
    )


def show_url(host: str, scheme: str) -> str:
    """Return the public part of an address: where it goes, without its secrets."""
    return f"{scheme}://{host}/{_HIDDEN}"
