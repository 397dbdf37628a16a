"""Rules of channels and push messages."""

import base64
import binascii
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from wakeful.core.errors import Conflict, Invalid, LimitReached, Unavailable
from wakeful.core.records import Approval
from wakeful.core.texts import cut
from wakeful.core.types import Agent, Notice, Outlet
from wakeful.notices.texts import NEEDS_APPROVAL, NOTIFY

# Channels: ways to reach a person outside of the inbox.


MAX_CHANNELS = 20  # of one person
MAX_NAME = 100
MAX_URL = 2_000
PER_HOUR = 30  # messages over one channel
_HOUR = timedelta(hours=1)
_HIDDEN = "****"
_TAKEN = ("inbox", "browser")  # names of Wakeful's own channels in the result of `notify`

Kind = Literal["channel", "push"]
Outcome = Literal["sent", "handed_over", "gone", "failed", "timed_out", "rate_limited"]
DONE: tuple[Outcome, ...] = ("sent", "handed_over")  # the latter: a push service has it, perhaps not yet the browser

OutletT = TypeVar("OutletT", bound=Outlet)


class ChannelNameTaken(Conflict):
    code = "channel_name_taken"

    def __init__(self, name: str) -> None:
        super().__init__(f"You have a channel named {name!r} already. Choose another name.", field="name")


class TooManyChannels(LimitReached):
    code = "too_many_channels"
    text = f"You have {MAX_CHANNELS} channels, which is the limit. Delete one first."


class BadAddress(Invalid):
    """An address that cannot be a channel. The message does not contain it, because it is a secret."""

    code = "bad_address"

    def __init__(self, schema: str, problem: str) -> None:
        super().__init__(
            f"This {schema!r} address cannot be a channel: {problem}.",
            field="url",
            hint="Write the address as an Apprise URL, such as ntfy://TOPIC, mailto://USER:PASSWORD@HOST or "
            "json://HOST/PATH.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The result of sending a notification over one channel, or to one browser."""

    channel: str  # its name
    kind: Kind = "channel"
    outcome: Outcome
    reason: str | None = None


def check_name(name: str) -> str:
    """Return a name without blanks around it, or refuse it."""
    name = name.strip()
    if not name or len(name) > MAX_NAME:
        raise Invalid(f"`name` must have 1 to {MAX_NAME} characters; {name[:20]!r} has {len(name)}.", field="name")
    if name.lower() in _TAKEN:
        raise Invalid(f"{name!r} is the name of one of Wakeful's own channels. Choose another name.", field="name")
    return name


def check_url(url: str) -> str:
    """Return an address without blanks around it, if it has the form of one."""
    url = url.strip()
    schema, colon, rest = url.partition("://")
    is_plain = all("!" <= character <= "~" for character in url)
    if not colon or not schema.isalnum() or not rest or not is_plain or len(url) > MAX_URL:
        problem = f"it is not SCHEMA://…, ASCII without blanks, {MAX_URL:,} characters at most"
        raise BadAddress(schema[:20] if colon and is_plain else "?", problem)
    return url


def show_channel(schema: str, host: str | None) -> str:
    """Return the public part of an address: where it goes, without its secrets."""
    return f"{schema}://{host or _HIDDEN}"


def count_message(outlet: OutletT, now: datetime) -> OutletT | None:
    """Count one more message; None if this hour's limit is reached."""
    # An hour that starts in the future is from before the clock was set back.
    if outlet.hour_from is None or abs(now - outlet.hour_from) >= _HOUR:
        return replace(outlet, hour_from=now, hour_count=1)
    if outlet.hour_count >= PER_HOUR:
        return None
    return replace(outlet, hour_count=outlet.hour_count + 1)


def free_at(outlet: Outlet) -> datetime:
    """Return when a channel or browser whose hourly limit is reached accepts messages again."""
    assert outlet.hour_from is not None
    return outlet.hour_from + _HOUR


def note_delivery(outlet: OutletT, delivery: Delivery, now: datetime) -> OutletT:
    """Return a channel or browser with the result of its last message."""
    if delivery.outcome in DONE:
        return replace(outlet, last_sent_at=now, last_error=None, last_error_at=None)
    return replace(outlet, last_error=delivery.reason or delivery.outcome, last_error_at=now)


# ── Push messages to browsers ────────────────────────────────────────────────────────────────────────────────────────

MAX_BROWSERS = 10  # of one person
MAX_ENDPOINT = 2_000
MAX_TITLE = 120  # characters; a phone shows fewer, and encrypted it must fit into 4,096 bytes
MAX_BODY = 400
_SEE_ALL = ". Open it to see the whole call."
_POINT = 65  # bytes of an uncompressed point on P-256
_SECRET = 16  # bytes


class TooManyBrowsers(LimitReached):
    code = "too_many_push_subscriptions"
    text = f"{MAX_BROWSERS} browsers get push messages for you, which is the limit. Remove one first."


class BadSubscription(Invalid):
    """A subscription that cannot be used. The message does not contain it, because it is a secret."""

    code = "bad_push_subscription"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(
            f"{field!r} is not from a push subscription: {problem}.",
            field=field,
            hint="Send what `PushSubscription.toJSON()` returns in the browser.",
        )


class PushKeyUnreadable(Unavailable):
    code = "push_key_unreadable"
    text = (
        "Push messages cannot be signed: their key was saved with another device key, perhaps by another node. Give "
        "all nodes the same device key (WAKEFUL_DEVICE_KEY)."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A subscription as a browser offers it."""

    endpoint: str
    service: str
    p256dh: str
    auth: str


def read_offer(endpoint: str, p256dh: str, auth: str) -> Offered:
    """Check the form of a subscription."""
    if len(endpoint) > MAX_ENDPOINT or not all("!" <= character <= "~" for character in endpoint):
        raise BadSubscription("endpoint", f"it must be ASCII without blanks, {MAX_ENDPOINT:,} characters at most")
    try:
        parts = urlsplit(endpoint)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise BadSubscription("endpoint", "it is not a URL") from None
    if parts.scheme != "https":
        raise BadSubscription("endpoint", f"it must start with https://, not {parts.scheme[:20]!r}")
    if not host or parts.username is not None or parts.password is not None:
        raise BadSubscription("endpoint", "it must have a host, and no user name or password")
    if len(decode(p256dh, "p256dh")) != _POINT:
        raise BadSubscription("p256dh", f"it must have {_POINT} bytes in base64url")
    if len(decode(auth, "auth")) != _SECRET:
        raise BadSubscription("auth", f"it must have {_SECRET} bytes in base64url")
    return Offered(endpoint=endpoint, service=host, p256dh=p256dh, auth=auth)


def decode(text: str, field: str) -> bytes:
    """Read base64url, with or without its padding."""
    try:
        return base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise BadSubscription(field, "it is not base64url") from None


def free_name(name: str, taken: Collection[str]) -> str:
    """Return a name for a browser that none of the user's other browsers has."""
    name = " ".join("".join(each if each.isprintable() else " " for each in name).split())[:MAX_NAME] or "Browser"
    names = (name, *(f"{name[: MAX_NAME - 4]} {number}" for number in range(2, len(taken) + 2)))
    return next(each for each in names if each not in taken)


def message_of(notice: Notice, body: str, agent: Agent | None) -> dict[str, Any]:
    """Return what a browser shows of a notice, and what its link is made from. It holds no secrets.

    Words of a model are shown as the agent's: a title such as "Wakeful: log in again" must not look like ours.
    """
    title = notice.title
    if notice.code == NOTIFY:
        title = f"{agent.name if agent else 'An agent'} writes: {title}"
    shown: Mapping[str, str | None] = {
        "id": notice.id,
        "code": notice.code,
        "title": cut(title, MAX_TITLE),
        "body": cut(body, MAX_BODY),
        "agent_id": notice.agent_id,
        "session_id": notice.session_id,
        "run_id": notice.run_id,
        "view_ref": notice.view_ref,
    }
    return {name: value for name, value in shown.items() if value is not None}


def approval_message(asked: Approval, agent: Agent) -> dict[str, Any]:
    """Return what a browser shows of a call that waits for approval; the sentence quotes what the model wrote."""
    return {
        "id": f"{NEEDS_APPROVAL}:{asked.run_id}:{asked.call_id}",
        "code": NEEDS_APPROVAL,
        "title": cut(f"{agent.name} needs your approval", MAX_TITLE),
        "body": f"{cut(asked.sentence, MAX_BODY - len(_SEE_ALL))}{_SEE_ALL}",
        "agent_id": agent.id,
        "session_id": asked.session_id,
        "run_id": asked.run_id,
    }


def urgency_of(notice: Notice) -> str:
    """Return the urgency (RFC 8030) of a notice: a phone that saves power still shows a request for approval."""
    return "high" if notice.code == NEEDS_APPROVAL else "normal"


def wait_of(subscription_wait: datetime | None, now: datetime) -> datetime | None:
    """Return until when a push service takes nothing; None: it takes messages now."""
    return subscription_wait if subscription_wait is not None and subscription_wait > now else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The answer of a receiver."""

    status: int | None = None  # None: there was none
    error: str | None = None  # None: it has taken the message
    retry_after: int | None = None  # seconds
