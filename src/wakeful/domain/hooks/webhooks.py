"""Outgoing webhooks: signed messages about events to other systems, sent again if they do not answer."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Literal

from wakeful.domain import ids
from wakeful.domain.addresses import is_web_address
from wakeful.domain.errors import Conflict, Invalid, LimitReached, NotFound
from wakeful.domain.inbox.notices import LOOP_ENDED, MAX_TITLE
from wakeful.domain.texts import check_text
from wakeful.domain.types import Notice, Run, Wake

Event = Literal["run.finished", "run.failed", "wake.missed", "loop.ended", "notification"]
Status = Literal["pending", "sent", "failed", "cancelled"]

EVENTS: Mapping[Event, str] = MappingProxyType(
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
KEEP = timedelta(days=30)  # messages
OLD_SECRET = timedelta(hours=24)  # for which messages are signed with the secret before a rotation too
MAX_WAIT = timedelta(days=1)  # as a receiver may ask for
_GONE = 410
_HIDDEN = "****"


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Another system that gets events. Its address is a secret."""

    id: str
    user_id: str
    agent_id: str | None = None  # None: of all agents
    name: str
    url: str
    shown: str  # the public part of the address
    secret: str  # encrypted
    old_secret: str | None = None
    old_until: datetime | None = None
    events: tuple[str, ...]
    enabled: bool = True
    failing_since: datetime | None = None
    last_sent_at: datetime | None = None
    last_error: str | None = None
    last_error_at: datetime | None = None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookMessage:
    """An event for one webhook; its id is the same in every attempt."""

    id: str
    webhook_id: str
    event: str
    about: str  # an event is sent once to a webhook
    data: str  # JSON
    status: Status = "pending"
    attempts: int = 0
    next_at: datetime | None = None
    taken_at: datetime | None = None
    last_status: int | None = None  # of HTTP
    last_error: str | None = None
    created_at: datetime
    settled_at: datetime | None = None

    @property
    def body(self) -> bytes:
        """Return the bytes to sign and send: the same in every attempt."""
        head = f'{{"type":"{self.event}","timestamp":"{self.created_at.isoformat()}","data":'
        return f"{head}{self.data}}}".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """An event, and the kinds under which a webhook may ask for it; the first that it asks for counts."""

    user_id: str
    agent_id: str | None
    kinds: tuple[Event, ...]
    about: str
    data: Mapping[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The answer of a receiver."""

    status: int | None = None  # None: there was none
    error: str | None = None  # None: it has taken the message
    retry_after: int | None = None  # seconds


class NoSuchWebhook(NotFound):
    code = "no_such_webhook"

    def __init__(self, webhook_id: str) -> None:
        super().__init__(f"There is no webhook {webhook_id!r}. `wakeful webhook ls` and GET /webhooks list yours.")


class NoSuchMessage(NotFound):
    code = "no_such_delivery"

    def __init__(self, message_id: str) -> None:
        super().__init__(
            f"There is no delivery {message_id!r} of this webhook. `wakeful webhook deliveries` lists those of the "
            f"last {KEEP.days} days."
        )


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


def kind_for(events: tuple[str, ...], happened: Happened) -> Event | None:
    """Return the kind under which a webhook with these events gets it; None: it does not."""
    return next((kind for kind in happened.kinds if kind in events), None)


def settle(message: WebhookMessage, webhook: Webhook, reply: Reply, now: datetime) -> tuple[WebhookMessage, Webhook]:
    """Note the result of an attempt: sent, tried again later, or given up; a webhook that fails for days is off."""
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


# ── Events ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def run_ended(run: Run, status: str, reason: str | None, note: str | None, at: datetime) -> Happened:
    """A run has ended."""
    is_failed = status in ("failed", "interrupted")
    return Happened(
        user_id=run.user_id,
        agent_id=run.agent_id,
        kinds=("run.failed",) if is_failed else ("run.finished",),
        about=f"run:{run.id}:{run.fence}",  # a run that is continued ends again
        data={
            "run_id": run.id,
            "session_id": run.session_id,
            "wake_id": run.wake_id,
            "trigger": run.trigger,
            "status": status,
            "reason": reason,
            "note": note,
            "started_at": None if run.started_at is None else run.started_at.isoformat(),
            "finished_at": at.isoformat(),
        },
        at=at,
    )


def wake_missed(wake: Wake, nominal_at: datetime, detail: Mapping[str, Any], at: datetime) -> Happened:
    """A wake was late by more than its grace."""
    return Happened(
        user_id=wake.user_id,
        agent_id=wake.agent_id,
        kinds=("wake.missed",),
        about=f"missed:{wake.id}:{nominal_at.isoformat()}",
        data={
            "wake_id": wake.id,
            "session_id": wake.session_id,
            "kind": wake.kind,
            "label": wake.comment or None,
            "nominal_at": nominal_at.isoformat(),
            **detail,
        },
        at=at,
    )


def notice_added(notice: Notice) -> Happened:
    """Something is in the inbox; the end of an agent's loop can also be asked for by itself."""
    return Happened(
        user_id=notice.user_id,
        agent_id=notice.agent_id,
        kinds=("loop.ended", "notification") if notice.code == LOOP_ENDED else ("notification",),
        about=f"notice:{notice.id}",
        data={
            "notification_id": notice.id,
            "code": notice.code,
            "title": notice.title,
            "body": notice.body,
            "times": notice.times,
            "run_id": notice.run_id,
            "session_id": notice.session_id,
            "wake_id": notice.wake_id,
        },
        at=notice.created_at,
    )


def show_url(host: str, scheme: str) -> str:
    """Return the public part of an address: where it goes, without its secrets."""
    return f"{scheme}://{host}/{_HIDDEN}"
