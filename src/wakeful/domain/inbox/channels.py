"""Channels: ways to reach a person outside of the inbox."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, TypeVar

from wakeful.domain.errors import Conflict, Forbidden, Invalid, LimitReached, NotFound
from wakeful.domain.types import Outlet

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


class NoSuchChannel(NotFound):
    code = "no_such_channel"

    def __init__(self, channel_id: str) -> None:
        super().__init__(f"There is no channel {channel_id!r}. `wakeful channel ls` and GET /channels list yours.")


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


class PrivateAddress(Forbidden):
    code = "private_address"

    def __init__(self, host: str, field: str = "url") -> None:
        super().__init__(
            f"The host {host!r} is not on the public internet. The owner of this server can allow it in the setting "
            "fetch_private_hosts.",
            field=field,
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


def show(schema: str, host: str | None) -> str:
    """Return the public part of an address: where it goes, without its secrets."""
    return f"{schema}://{host or _HIDDEN}"


def count(outlet: OutletT, now: datetime) -> OutletT | None:
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


def note(outlet: OutletT, delivery: Delivery, now: datetime) -> OutletT:
    """Return a channel or browser with the result of its last message."""
    if delivery.outcome in DONE:
        return replace(outlet, last_sent_at=now, last_error=None, last_error_at=None)
    return replace(outlet, last_error=delivery.reason or delivery.outcome, last_error_at=now)
