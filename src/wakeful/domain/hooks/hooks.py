"""Incoming hooks: addresses at which another system starts work of an agent, with a secret of its own."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Literal, cast

from wakeful.domain.errors import Conflict, Invalid, LimitReached, NotFound
from wakeful.domain.hooks.schemes import SENDERS, Headers, Refusal, Scheme
from wakeful.domain.people.accounts import NotSignedIn
from wakeful.domain.texts import check_note, check_text
from wakeful.domain.wakes.create import MAX_INSTRUCTIONS

Mode = Literal["run", "notify"]
Outcome = Literal["run", "folded", "notified", "ping", "filtered"]

MAX_HOOKS = 50  # of one person
MAX_NAME = 100
MAX_EVENTS = 50
MAX_EVENT = 100
MAX_TOOLS = 200
MAX_COALESCE = 3_600  # seconds
MAX_FOLDED = 100  # deliveries of one run
MAX_PER_MINUTE = 600
MAX_WAITING = 500  # runs of one hook that have not begun, as while the agent is paused
PER_MINUTE = 60
KEEP = timedelta(days=30)  # deliveries; the same one again is a duplicate for as long
KEEP_PAYLOAD = timedelta(days=3)  # after that, of deliveries whose run has ended
OLD_SECRET = timedelta(hours=24)  # for which the secret before a rotation is still accepted
# Toolsets whose tools change nothing outside of the agent's own database, files, bookings and its user's inbox.
INSIDE = frozenset({"recall", "scheduler", "next_run", "database", "notify", "files"})
_HARMLESS = ("read_skill", "finish_step")  # of no toolset

_MAX_ID = 200
_GITHUB_PING = {"zen", "hook_id"}  # fields that only the body of a ping has
_EVENT = re.compile(r"[A-Za-z0-9_.:/ -]{1,100}")
_FILTER = re.compile(r"[A-Za-z0-9_.:/ -]{1,100}\*?|\*")
_ID = re.compile(rf"[!-~]{{1,{_MAX_ID}}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """An address for another system, and what its deliveries start."""

    id: str
    user_id: str
    agent_id: str
    session_id: str | None  # where its runs land; None: each in a new session
    name: str
    scheme: Scheme
    secret: str  # encrypted
    old_secret: str | None = None  # encrypted
    old_until: datetime | None = None
    events: tuple[str, ...] = ()  # empty: all
    instructions: str
    tools: tuple[str, ...] | None = None  # None: those that change nothing outside
    coalesce_seconds: int = 0
    per_minute: int = PER_MINUTE
    mode: Mode = "run"
    enabled: bool = True
    last_at: datetime | None = None  # of the last delivery that was accepted
    refused_at: datetime | None = None
    refused_why: str | None = None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HookDelivery:
    """A delivery that was accepted."""

    id: str
    hook_id: str
    delivery_id: str  # the sender's
    sha256: str  # of the body
    event: str | None
    at: datetime
    outcome: Outcome
    wake_id: str | None = None
    run_id: str | None = None
    size: int  # bytes of the body


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """The facts about a delivery whose sender is proven."""

    delivery_id: str
    is_id_signed: bool
    sha256: str
    event: str | None
    is_ping: bool
    body: bytes


class NoSuchHook(NotFound):
    code = "no_such_hook"

    def __init__(self, hook_id: str) -> None:
        super().__init__(f"There is no hook {hook_id!r}. `wakeful hook ls` and GET /hooks list yours.")


class NoSuchDelivery(NotFound):
    code = "no_such_delivery"

    def __init__(self, delivery_id: str) -> None:
        super().__init__(
            f"There is no delivery {delivery_id!r} of this hook. `wakeful hook deliveries` lists those of the last "
            f"{KEEP.days} days."
        )


class UnknownHook(NotFound):
    """The answer to every sender that may not know more: unknown, switched off, or of someone who is gone."""

    code = "no_such_hook"
    text = "There is no such hook."


class BadSignature(NotSignedIn):
    """The answer to a delivery that proves nothing. It does not say why: the hook's owner reads that."""

    code = "bad_signature"
    text = "The delivery was refused."
    hint = None

    def __init__(self, why: Refusal) -> None:
        super().__init__()
        self.why: Refusal = why


class DeliveryReused(Conflict):
    code = "delivery_id_reused"
    text = "A delivery with this id and another body was accepted before. Send it with an id of its own."


class TooManyDeliveries(LimitReached):
    code = "too_many_deliveries"

    def __init__(self, per_minute: int, seconds: int) -> None:
        super().__init__(
            f"This hook takes {per_minute} deliveries a minute. Try again in {seconds} s.", seconds=seconds
        )


class TooManyWaiting(LimitReached):
    code = "too_many_waiting"

    def __init__(self) -> None:
        super().__init__("Too many runs of this hook wait. Try again in a minute.", seconds=60)


class HookNameTaken(Conflict):
    code = "hook_name_taken"

    def __init__(self, name: str) -> None:
        super().__init__(f"You have a hook named {name!r} already. Choose another name.", field="name")


class TooManyHooks(LimitReached):
    code = "too_many_hooks"
    text = f"You have {MAX_HOOKS} hooks, which is the limit. Delete one first."


class SessionUnconfirmed(Conflict):
    code = "session_unconfirmed"
    field = "confirm_session"
    text = (
        "Deliveries of this hook would be added to a session, and stay in its transcript: every later run there reads "
        "them, with all of the agent's tools. Send `confirm_session: true` if you want that, or leave `session_id` out "
        "to have a new session for each run."
    )


class SecretUnreadable(Conflict):
    code = "secret_unreadable"
    text = (
        "The secret was encrypted with another device key, so nothing can be checked or signed with it. Rotate it, and "
        "set the new one on the other side."
    )


REFUSALS: dict[Refusal, str] = {
    "missing": "the header with the signature or the secret was missing",
    "malformed": "the header with the signature or the secret has another form",
    "wrong": "the signature or the secret did not match",
    "stale": "the signature was right, but its time was more than five minutes off",
}
# Why a hook last refused something, in words.
REFUSED: Mapping[str, str] = {
    **REFUSALS,
    "delivery_id_reused": "its id was used before, for another body",
    "too_many_deliveries": "too many came within a minute",
}


def check(hook: Hook) -> None:
    """Refuse a hook with values that cannot be used."""
    name = check_text("name", hook.name, MAX_NAME, is_one_line=True)
    if name != name.strip():
        raise Invalid(f"`name` must have no blanks around it, got {name!r}.", field="name")
    if hook.mode == "run":
        check_text("instructions", hook.instructions, MAX_INSTRUCTIONS)
    else:
        check_note("instructions", hook.instructions, MAX_INSTRUCTIONS)
    for event in hook.events:
        if not _FILTER.fullmatch(event):
            raise Invalid(
                f"`events` must be names of events, such as push, or the beginning of one and *, got {event[:50]!r}.",
                field="events",
            )


def tools_inside(toolset_of: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return an agent's tools that change nothing outside of its own things, and none of its instructions."""
    return tuple(
        name for name, toolset in toolset_of.items() if toolset in INSIDE or (toolset is None and name in _HARMLESS)
    )


def takes(hook: Hook, event: str | None) -> bool:
    """Return whether a hook is for an event: it has no list, or one that names it, or its part before a dot."""
    if not hook.events:
        return True
    return event is not None and any(_matches(each, event) for each in hook.events)


def _matches(wanted: str, event: str) -> bool:
    if wanted.endswith("*"):
        return event.startswith(wanted[:-1])
    return event == wanted or event.startswith(f"{wanted}.")


def read(scheme: Scheme, headers: Headers, body: bytes) -> Arrived:
    """Read the id and the event of a delivery whose sender is proven."""
    sender, digest = SENDERS[scheme], sha256(body).hexdigest()
    fields = _fields(body)
    given = [headers[name] for name in sender.id_headers if headers.get(name)]
    if sender.is_id_in_body and isinstance(fields.get("id"), str):
        given = [fields["id"]]
    event = _event(fields.get("type") if sender.event_header is None else headers.get(sender.event_header), fields)
    return Arrived(
        delivery_id=_id(given[0]) if given else f"sha256:{digest}",
        is_id_signed=sender.is_id_signed,
        sha256=digest,
        event=event,
        # By the body, because GitHub does not sign the header with the event.
        is_ping=fields.keys() >= _GITHUB_PING if scheme == "github" else event == "ping",
        body=body,
    )


def _id(text: str) -> str:
    """Return a sender's id as it is stored: itself, or its hash if it is long or not printable."""
    return text if _ID.fullmatch(text) else f"sha256:{sha256(text.encode('utf-8', 'replace')).hexdigest()}"


def _event(name: object, fields: dict[str, Any]) -> str | None:
    """Return the name of an event, with its action if the body has one: `pull_request.opened`."""
    if not isinstance(name, str) or not _EVENT.fullmatch(name):
        return None
    whole = f"{name}.{fields.get('action')}"
    return whole if "action" in fields and _EVENT.fullmatch(whole) else name


def _fields(body: bytes) -> dict[str, Any]:
    """Return the fields of a body that is a JSON object; of any other body, none."""
    try:
        found: object = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def summarise(body: bytes) -> str:
    """Return the telling fields of a JSON body, a line each, for a notification without a model."""
    lines: list[str] = []
    for name, value in _fields(body).items():
        if isinstance(value, dict):
            inner = cast("dict[str, Any]", value)
            value = next((inner[key] for key in _TELLING if isinstance(inner.get(key), str | int)), None)
        if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
            lines.append(f"{_line(name, 60)}: {_line(str(value), 200)}")
    return "\n".join(lines[:_MAX_LINES])


_TELLING = ("full_name", "title", "name", "login", "username", "email", "html_url", "url", "id")
_MAX_LINES = 12


def _line(text: str, most: int) -> str:
    text = "".join(each if each.isprintable() else " " for each in " ".join(text.split()))
    return text if len(text) <= most else text[: most - 1] + "…"
