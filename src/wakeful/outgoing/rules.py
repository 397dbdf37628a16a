"""Rules of outgoing messages: attempts, answers, order; of channels and of push messages."""

import base64
import binascii
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import urlsplit

from wakeful.core import ids
from wakeful.core.errors import Conflict, Invalid, LimitReached, Unavailable
from wakeful.core.records import Approval, Outgoing
from wakeful.core.texts import cut
from wakeful.core.types import Agent, Notice, Outlet
from wakeful.notices.texts import NEEDS_APPROVAL, NOTIFY

# ── A message: what is sent, what comes back, and what becomes of it ─────────────────────────────────────────────────

TEST = "test"  # the event of a message that a person sends to try something; it is sent once
MAX_WAIT = timedelta(days=1)  # as a receiver may ask for
SHORT_PAUSES = (1.0, 3.0)  # seconds between three tries within one attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An HTTP request (POST)."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    seconds: float  # for each try
    pauses: Sequence[float] = ()  # before further tries within this attempt, if the service fails


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A message that apprise sends."""

    url: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back: a status of HTTP, or why there is none."""

    status: int | None = None
    retry_after: int | None = None  # seconds
    problem: str | None = None  # "private_address", "certificate", "unreachable", "timed_out", "failed"
    detail: str = ""

    @property
    def is_good(self) -> bool:
        """Whether it was accepted. apprise returns no status."""
        return self.problem is None and (self.status is None or 200 <= self.status < 300)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one attempt, as its kind reads the answer."""

    outcome: str  # counted; "cancelled" and "dropped": nothing was sent
    reason: str | None = None
    status: int | None = None  # of HTTP
    retry_after: int | None = None

    @property
    def is_sent(self) -> bool:
        return self.outcome in ("sent", "handed_over")  # the latter: a push service has it, perhaps not the browser


CANCELLED = Result(outcome="cancelled")  # the target is gone, off or muted: it is not sent
DROPPED = Result(outcome="dropped")  # it would come too late


def explain(answer: Answer, what: str) -> str | None:
    """Return why an answer is no success; None: it is one."""
    if answer.is_good:
        return None
    if answer.problem == "unreachable" or answer.problem == "certificate":
        return f"{what} cannot be reached ({answer.detail})"
    if answer.problem is not None:
        return answer.detail
    is_redirect = answer.status is not None and 300 <= answer.status < 400
    return f"{what} answered {answer.status}" + (", a redirect, which is not followed" if is_redirect else "")


def timed_out(seconds: float) -> Answer:
    """Return the answer to a request that the time limit has cut off."""
    return Answer(problem="timed_out", detail=f"no answer within {seconds:g} s; it may or may not have arrived")


def make_test(kind: str, target: str, body: str, now: datetime) -> Outgoing:
    """Return a test message, which its sender adds as claimed."""
    test_id = ids.new_id(now)
    about = f"{TEST}:{test_id}"
    return Outgoing(
        id=test_id,
        kind=kind,
        target=target,
        event=TEST,
        about=about,
        body=body,
        next_at=now,
        taken_at=now,
        created_at=now,
    )


def in_order(messages: Iterable[Outgoing]) -> list[Outgoing]:
    """Return messages by their target, in the order in which they are sent. All nodes lock targets in this order."""
    # A run may start and end at the same reading of the clock.
    return sorted(messages, key=lambda each: (each.target, each.created_at, each.event != "start", each.id))


def settle(message: Outgoing, result: Result, ladder: Sequence[timedelta], now: datetime) -> Outgoing:
    """Record the result of an attempt: sent, tried again after the next wait of the ladder, or given up."""
    tried = replace(
        message,
        attempts=message.attempts + 1,
        taken_at=None,
        abandoned=0,
        last_status=result.status,
        last_error=result.reason,
    )
    if result.is_sent:
        return replace(tried, status="sent", next_at=None, settled_at=now)
    if result in (CANCELLED, DROPPED) or tried.attempts > len(ladder):
        return replace(tried, status="failed", next_at=None, settled_at=now)
    wait = max(ladder[tried.attempts - 1], min(timedelta(seconds=result.retry_after or 0), MAX_WAIT))
    return replace(tried, next_at=now + wait)


def release(message: Outgoing) -> Outgoing:
    """Return a message that was claimed and not sent."""
    return replace(message, taken_at=None)


def replay(message: Outgoing, now: datetime) -> Outgoing:
    """Return a message that is sent again, under its own id."""
    return replace(message, status="pending", attempts=0, next_at=now, taken_at=None, abandoned=0, settled_at=None)


# ── Channels: ways to reach a person outside of the inbox ────────────────────────────────────────────────────────────

MAX_CHANNELS = 20  # of one person
MAX_NAME = 100
MAX_URL = 2_000
PER_HOUR = 30  # messages over one channel
_HOUR = timedelta(hours=1)
_HIDDEN = "****"
_TAKEN = ("inbox", "browser")  # names of Wakeful's own channels in the result of `notify`

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


def record_result(outlet: OutletT, result: Result, now: datetime) -> OutletT:
    """Return a channel or browser with the result of its last message."""
    if result.is_sent:
        return replace(outlet, last_sent_at=now, last_error=None, last_error_at=None)
    return replace(outlet, last_error=result.reason or result.outcome, last_error_at=now)


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


def urgency_of(code: str) -> str:
    """Return the urgency (RFC 8030) of a message: a phone that saves power still shows a request for approval."""
    return "high" if code in (NEEDS_APPROVAL, TEST) else "normal"
