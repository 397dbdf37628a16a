"""Outgoing webhooks: signed messages about events to other systems, sent again if they do not answer."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType

from wakeful.core import ids
from wakeful.core.addresses import is_web_address
from wakeful.core.errors import Conflict, Invalid, LimitReached
from wakeful.core.records import Outgoing, Webhook, WebhookEvent
from wakeful.core.texts import check_text
from wakeful.core.types import Notice
from wakeful.notices.texts import MAX_TITLE
from wakeful.outgoing.rules import TEST, Result

EVENTS: Mapping[WebhookEvent, str] = MappingProxyType(
    {
        "run.finished": "A run finished, or was stopped",
        "run.failed": "A run failed, or was interrupted",
        "wake.missed": "A planned time was missed",
        "loop.ended": "An agent scheduled no next run",
        "notification": "Something is in the inbox",
    }
)

MAX_WEBHOOKS = 20  # of one person
MAX_NAME = 100
MAX_URL = 2_000
# Waits between the attempts: eight within a day, as Standard Webhooks recommends.
LADDER = tuple(timedelta(seconds=seconds) for seconds in (5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 8 * 3600, 8 * 3600))
OFF_AFTER = timedelta(days=5)  # of failures without a success
OLD_SECRET = timedelta(hours=24)  # for which messages are signed with the secret before a rotation too
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


def to_body(message: Outgoing) -> bytes:
    """Return the bytes to sign and send: the same in every attempt."""
    head = f'{{"type":"{message.event}","timestamp":"{message.created_at.isoformat()}","data":'
    return f"{head}{message.body}}}".encode()


def record_result(webhook: Webhook, event: str, result: Result, now: datetime) -> Webhook:
    """Return a webhook with the result of an attempt; one that fails for days is off."""
    if result.is_sent:
        return replace(webhook, failing_since=None, last_sent_at=now, last_error=None, last_error_at=None)
    failed = replace(webhook, last_error=result.reason, last_error_at=now)
    if event == TEST:  # a test by hand says nothing about events
        return failed
    failing_since = webhook.failing_since or now
    is_over = result.status == _GONE or now - failing_since >= OFF_AFTER
    return replace(failed, failing_since=failing_since, enabled=webhook.enabled and not is_over)


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
