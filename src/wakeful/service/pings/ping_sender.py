"""Send pings, inside the channel process: without redirects, and with codes as the only result."""

import http.client
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

_PAUSES = (1.0, 3.0)  # seconds between the three tries
_SECONDS = 8.0  # for one try

Ping = Mapping[str, Any]  # "id", "url", "body"


def send_in_order(
    pings: Sequence[Ping], context: ssl.SSLContext, refusal: Callable[[], str | None], answer: Callable[..., object]
) -> None:
    """Send pings to one address, one after the other, and answer each with its outcome.

    `refusal` returns what the address guard refused in this thread.
    """
    for ping in pings:
        answer({"id": ping["id"], "outcome": _send(ping, context, refusal)})


def _send(ping: Ping, context: ssl.SSLContext, refusal: Callable[[], str | None]) -> str:
    outcome = ""
    for pause in (*_PAUSES, None):
        outcome, is_temporary = _try(ping, context, refusal)
        if not is_temporary or pause is None:
            break
        time.sleep(pause)
    return outcome


def _try(ping: Ping, context: ssl.SSLContext, refusal: Callable[[], str | None]) -> tuple[str, bool]:
    """Send once, and return the outcome and whether another try may help."""
    parts = urlsplit(str(ping["url"]))
    host, target = parts.hostname or "", parts.path or "/"
    connection = (
        http.client.HTTPSConnection(host, parts.port, timeout=_SECONDS, context=context)
        if parts.scheme == "https"
        else http.client.HTTPConnection(host, parts.port, timeout=_SECONDS)
    )
    headers = {"Content-Type": "text/plain; charset=utf-8", "User-Agent": "wakeful"}
    try:
        connection.request("POST", f"{target}?{parts.query}" if parts.query else target, ping["body"].encode(), headers)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        if refusal() is not None:
            return "private_address", False
        return ("certificate", False) if isinstance(error, ssl.SSLCertVerificationError) else ("unreachable", True)
    finally:
        connection.close()
    if 200 <= status < 300:
        return "sent", False
    return ("redirect" if 300 <= status < 400 else "refused"), status >= 500
