"""Pings: requests that tell a monitoring service outside that a wake ran, in the form of healthchecks.io."""

from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from wakeful.domain.addresses import is_web_address
from wakeful.domain.errors import Invalid

MAX_URL = 2_000
_HIDDEN = "****"

PingEvent = Literal["start", "ok", "failed", "alive", "unready"]

# Suffixes of the path of an address: exit codes for a run, `fail` for the server.
_SUFFIXES: dict[PingEvent, str] = {"start": "/start", "ok": "/0", "failed": "/1", "alive": "", "unready": "/fail"}


class BadPingAddress(Invalid):
    """An address that cannot be pinged. The message does not contain it, because it is a secret."""

    code = "bad_ping_address"
    field = "ping_url"
    text = (
        f"`ping_url` must be an http:// or https:// address without user name, password and #, in ASCII without "
        f"blanks, {MAX_URL:,} characters at most."
    )
    hint = "Copy the ping address of a check, such as https://hc-ping.com/UUID."


def check_ping_url(url: str) -> str:
    """Return an address without blanks around it, or refuse it."""
    url = url.strip()
    if not is_web_address(url, MAX_URL):
        raise BadPingAddress
    return url


def host_of(url: str) -> str:
    """Return the host of a checked address."""
    return urlsplit(url).hostname or ""


def path_of(url: str) -> str:
    """Return the secret part of a checked address."""
    return urlsplit(url).path.strip("/")


def show_ping_url(url: str) -> str:
    """Return the public part of an address: where it goes, without its secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/{_HIDDEN}"


def to_ping(url: str, event: PingEvent, run_id: str | None = None) -> str:
    """Return the address to request for an event; `rid` lets the service match the start and the end of a run."""
    parts = urlsplit(url)
    rid = "" if run_id is None else f"rid={run_id}"
    query = "&".join(part for part in (parts.query, rid) if part)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + _SUFFIXES[event], query, ""))
