"""Proofs that a delivery comes from its sender: a signature over the bytes of the body, or a secret in a header.

Nothing in a delivery is parsed before this is checked. The HMACs are ten lines of the standard library; the package
`standardwebhooks` knows only one of these schemes, and reads the clock by itself.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from secrets import token_bytes, token_urlsafe
from types import MappingProxyType
from typing import Literal

from wakeful.core.errors import Invalid
from wakeful.core.records import Scheme

Refusal = Literal["missing", "malformed", "wrong", "stale"]

TOLERANCE = 300  # seconds between a signed timestamp and now, as Stripe and Standard Webhooks recommend
STANDARD_PREFIX = "whsec_"
MIN_SECRET, MAX_SECRET = 16, 200  # characters of a secret that a person sets
_MAX_SIGNATURES = 20  # of one delivery; a sender has a few while it rotates its secret
_SECONDS = re.compile(r"[0-9]{1,12}")
_PRINTABLE = re.compile(r"[!-~]+")

Headers = Mapping[str, str]  # by their names in lower case


class Unproven(Exception):
    """A delivery that does not prove to come from the sender."""

    def __init__(self, why: Refusal) -> None:
        super().__init__(why)
        self.why: Refusal = why


class BadSecret(Invalid):
    """A secret that cannot be used. The message does not contain it."""

    code = "bad_secret"
    field = "secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """The traits of one scheme."""

    label: str
    check: Callable[[Headers, bytes, str, datetime], None]  # raises Unproven
    id_headers: tuple[str, ...] = ()  # of the delivery's id, the first that is there
    is_id_signed: bool = False
    event_header: str | None = None  # None: the field `type` of the body
    is_id_in_body: bool = False  # the field `id` of the body


def check(scheme: Scheme, headers: Headers, body: bytes, secrets: Sequence[str], now: datetime) -> None:
    """Raise Unproven unless one of the secrets proves the delivery. Every secret is tried, in the same time."""
    refusals: list[Refusal] = []
    for secret in secrets:
        try:
            SENDERS[scheme].check(headers, body, secret, now)
        except Unproven as refused:
            refusals.append(refused.why)
    if len(refusals) == len(secrets):
        # A stale delivery of the right secret says more than a wrong signature of the other one.
        raise Unproven("stale" if "stale" in refusals else refusals[0] if refusals else "wrong")


def make_secret(scheme: Scheme) -> str:
    """Return a new random secret in the form that senders of this scheme take."""
    if scheme in ("standard", "stripe"):
        return STANDARD_PREFIX + base64.b64encode(token_bytes(32)).decode()
    return token_urlsafe(32)


def check_secret(scheme: Scheme, secret: str) -> str:
    """Return a secret that a person pasted, without blanks around it, or refuse it."""
    secret = secret.strip()
    if not MIN_SECRET <= len(secret) <= MAX_SECRET or not _PRINTABLE.fullmatch(secret):
        raise BadSecret(
            f"`secret` must have {MIN_SECRET} to {MAX_SECRET} printable ASCII characters without blanks, got "
            f"{len(secret)}. Leave it out to have one made."
        )
    if scheme == "standard" and _standard_key(secret) is None:
        raise BadSecret(
            f"`secret` of a Standard Webhooks sender must be {STANDARD_PREFIX} and 24 to 64 bytes in base64. Copy it "
            "as the sender shows it."
        )
    return secret


def sign_standard(secret: str, message_id: str, at: datetime, body: bytes) -> Mapping[str, str]:
    """Return the headers of a Standard Webhooks message."""
    seconds = str(int(at.timestamp()))
    key = _standard_key(secret)
    assert key is not None  # checked when it was saved
    signature = base64.b64encode(_standard_digest(key, message_id, seconds, body)).decode()
    return {"webhook-id": message_id, "webhook-timestamp": seconds, "webhook-signature": f"v1,{signature}"}


def sign(scheme: Scheme, secret: str, delivery_id: str, event: str, at: datetime, body: bytes) -> Mapping[str, str]:
    """Return the headers with which a sender of this scheme would send a body; for tests of a hook."""
    seconds = str(int(at.timestamp()))
    match scheme:
        case "github":
            signed = f"sha256={hmac.new(secret.encode(), body, sha256).hexdigest()}"
            return {"x-hub-signature-256": signed, "x-github-delivery": delivery_id, "x-github-event": event}
        case "stripe":
            signed = hmac.new(secret.encode(), seconds.encode() + b"." + body, sha256).hexdigest()
            return {"stripe-signature": f"t={seconds},v1={signed}"}
        case "standard":
            return sign_standard(secret, delivery_id, at, body)
        case "gitlab":
            return {"x-gitlab-token": secret, "idempotency-key": delivery_id, "x-gitlab-event": event}
        case "bearer":
            return {"authorization": f"Bearer {secret}", "idempotency-key": delivery_id}


def _check_github(headers: Headers, body: bytes, secret: str, _now: datetime) -> None:
    kind, _, given = _header(headers, "x-hub-signature-256").partition("=")
    if kind != "sha256" or not given:
        raise Unproven("malformed")
    _compare(given, hmac.new(secret.encode(), body, sha256).hexdigest())


def _check_stripe(headers: Headers, body: bytes, secret: str, now: datetime) -> None:
    parts = [part.strip().partition("=") for part in _header(headers, "stripe-signature").split(",")]
    times = [value for name, _, value in parts if name == "t"]
    given = [value for name, _, value in parts if name == "v1"]
    if len(times) != 1 or not given or not _SECONDS.fullmatch(times[0]):
        raise Unproven("malformed")
    signed = hmac.new(secret.encode(), times[0].encode() + b"." + body, sha256).hexdigest()
    _compare_any(given, signed)
    _check_time(times[0], now)


def _check_standard(headers: Headers, body: bytes, secret: str, now: datetime) -> None:
    message_id = _header(headers, "webhook-id")
    seconds = _header(headers, "webhook-timestamp")
    signatures = [part.partition(",") for part in _header(headers, "webhook-signature").split(" ")]
    given = [value for version, _, value in signatures if version == "v1"]
    if not given or not _SECONDS.fullmatch(seconds):
        raise Unproven("malformed")
    digest = _standard_digest(_standard_key(secret) or b"", message_id, seconds, body)
    _compare_any(given, base64.b64encode(digest).decode())
    _check_time(seconds, now)


def _check_gitlab(headers: Headers, _body: bytes, secret: str, _now: datetime) -> None:
    _compare(_header(headers, "x-gitlab-token"), secret)


def _check_bearer(headers: Headers, _body: bytes, secret: str, _now: datetime) -> None:
    kind, _, given = _header(headers, "authorization").partition(" ")
    if kind.lower() != "bearer":
        raise Unproven("malformed")
    _compare(given.strip(), secret)


def _header(headers: Headers, name: str) -> str:
    value = headers.get(name, "")
    if not value:
        raise Unproven("missing")
    return value


def _compare(given: str, expected: str) -> None:
    # As bytes: compare_digest takes no text that is not ASCII, and a header may hold any Latin-1 character.
    if not hmac.compare_digest(given.encode(), expected.encode()):
        raise Unproven("wrong")


def _compare_any(given: Sequence[str], expected: str) -> None:
    found = [hmac.compare_digest(each.encode(), expected.encode()) for each in given[:_MAX_SIGNATURES]]
    if not any(found):
        raise Unproven("wrong")


def _check_time(seconds: str, now: datetime) -> None:
    if abs(now.timestamp() - int(seconds)) > TOLERANCE:
        raise Unproven("stale")


def _standard_key(secret: str) -> bytes | None:
    if not secret.startswith(STANDARD_PREFIX):
        return None
    try:
        key = base64.b64decode(secret.removeprefix(STANDARD_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if 24 <= len(key) <= 64 else None


def _standard_digest(key: bytes, message_id: str, seconds: str, body: bytes) -> bytes:
    return hmac.new(key, f"{message_id}.{seconds}.".encode() + body, sha256).digest()


SENDERS: Mapping[Scheme, Sender] = MappingProxyType(
    {
        "github": Sender(
            label="GitHub",
            check=_check_github,
            id_headers=("x-github-delivery",),
            event_header="x-github-event",
        ),
        "stripe": Sender(label="Stripe", check=_check_stripe, is_id_in_body=True, is_id_signed=True),
        "standard": Sender(
            label="Standard Webhooks", check=_check_standard, id_headers=("webhook-id",), is_id_signed=True
        ),
        "gitlab": Sender(
            label="GitLab",
            check=_check_gitlab,
            id_headers=("idempotency-key", "x-gitlab-event-uuid"),
            event_header="x-gitlab-event",
        ),
        "bearer": Sender(label="a bearer token", check=_check_bearer, id_headers=("idempotency-key",)),
    }
)
