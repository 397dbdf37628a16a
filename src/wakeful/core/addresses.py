"""Addresses: public and private IP addresses, those of web servers, and those that are pinged.

A ping is a request that tells a monitoring service outside that a wake ran, in the form of healthchecks.io.
"""

import ipaddress
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from wakeful.core.errors import Invalid

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# The standard library calls some of these global, and which ones differs between its versions.
_REFUSED = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; also one cloud's metadata server
        "127.0.0.0/8",
        "168.63.129.16/32",  # public range, but an internal service of one cloud
        "169.254.0.0/16",  # link-local; the other clouds' metadata servers
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "2001::/23",  # Teredo and other tunnels
        "2001:db8::/32",
        "2002::/16",  # 6to4: any IPv4 address can be inside
        "3fff::/20",
    )
)
# The rest of IPv6 is loopback, local, multicast, or contains an IPv4 address (mapped, NAT64).
_GLOBAL_IPV6 = ipaddress.IPv6Network("2000::/3")


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address or `localhost`. The client for programs has the same function."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host.lower() == "localhost"
    # Before Python 3.13 a mapped address is not loopback. A zone may be any text.
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback and "%" not in host


def is_public(address: Address) -> bool:
    """Return whether an address is on the public internet."""
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL_IPV6:
        return False
    return not any(address in network for network in _REFUSED if network.version == address.version)


def hide_login(text: str) -> str:
    """Return a text without what may be secret in an address in it: user name, password and query."""
    # Up to the last @, because a password with a / or # in it is not parsed as one.
    before, at, after = text.rpartition("@")
    scheme, mark, _ = before.partition("://")
    if mark:
        text = f"{scheme}://•••@{after}"
    elif at and ":" in before and not any(map(str.isspace, before)):
        text = f"•••@{after}"
    path, question, _ = text.partition("?")
    return f"{path}?•••" if question and "://" in path else text


def is_web_address(url: str, most: int) -> bool:
    """Return whether a text is an http:// or https:// address that can be requested, without a login in it."""
    if len(url) > most or not all("!" <= character <= "~" for character in url) or "#" in url:
        return False
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and has_host and "@" not in parts.netloc


# Ping addresses.


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
