"""Send push messages, pings and webhooks, inside the channel process."""

import http.client
import ssl
import time
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

# ── Push messages: HTTPS only, without redirects ─────────────────────────────────────────────────────────────────────


_PAUSES = (1.0, 3.0)  # seconds between the three tries
_MAX_SHORT_WAIT = 5  # seconds that are waited for here when the push service asks for them
_USUAL_WAIT = 60  # seconds, if it does not say how long
_MAX_DIGITS = 9
_TOO_MANY = 429

Answer = dict[str, Any]


def send_push(request: Mapping[str, Any], context: ssl.SSLContext, refusal: Callable[[], str | None]) -> Answer:
    """Send one message, again after an error of the service, and return its status or why it failed.

    `refusal` returns what the address guard refused in this thread.
    """
    answer: Answer = {}
    for pause in (*_PAUSES, None):
        answer = _try_push(request, context, refusal)
        wait = _wait_of(answer, pause)
        if wait is None:
            return answer
        time.sleep(wait)
    return answer


def _try_push(request: Mapping[str, Any], context: ssl.SSLContext, refusal: Callable[[], str | None]) -> Answer:
    parts = urlsplit(str(request["endpoint"]))
    target = parts.path or "/"
    connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=60, context=context)
    try:
        body = b64decode(request["body"])
        connection.request("POST", f"{target}?{parts.query}" if parts.query else target, body, request["headers"])
        response = connection.getresponse()
        return _read_push_answer(response.status, response.headers.get("Retry-After"))
    except (OSError, http.client.HTTPException) as error:
        if refused := refusal():
            return {"error": refused}
        is_untrusted = isinstance(error, ssl.SSLCertVerificationError)
        return {
            "error": f"the push service cannot be reached ({type(error).__name__})",
            "is_temporary": not is_untrusted,
        }
    finally:
        connection.close()


def _read_push_answer(status: int, retry_after: str | None) -> Answer:
    if 200 <= status < 300:
        return {"status": status}
    answer: Answer = {"status": status, "error": f"the push service answered {status}"}
    if status == _TOO_MANY:
        is_number = retry_after is not None and retry_after.isdecimal() and len(retry_after) <= _MAX_DIGITS
        answer["retry_after"] = int(retry_after or 0) if is_number else _USUAL_WAIT
    elif status >= 500:
        answer["is_temporary"] = True
    elif 300 <= status < 400:
        answer["error"] += ", a redirect, which is not followed"
    return answer


def _wait_of(answer: Mapping[str, Any], pause: float | None) -> float | None:
    """Return how long to wait before the next try; None: there is none."""
    if pause is None:
        return None
    if answer.get("is_temporary"):
        return pause
    wait = answer.get("retry_after")
    return max(1.0, wait) if wait is not None and wait <= _MAX_SHORT_WAIT else None


# ── Pings: without redirects, and with codes as the only result ──────────────────────────────────────────────────────

_PING_SECONDS = 8.0  # for one try

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
        outcome, is_temporary = _try_ping(ping, context, refusal)
        if not is_temporary or pause is None:
            break
        time.sleep(pause)
    return outcome


def _try_ping(ping: Ping, context: ssl.SSLContext, refusal: Callable[[], str | None]) -> tuple[str, bool]:
    """Send once, and return the outcome and whether another try may help."""
    parts = urlsplit(str(ping["url"]))
    host, target = parts.hostname or "", parts.path or "/"
    connection = (
        http.client.HTTPSConnection(host, parts.port, timeout=_PING_SECONDS, context=context)
        if parts.scheme == "https"
        else http.client.HTTPConnection(host, parts.port, timeout=_PING_SECONDS)
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


# ── Messages of webhooks: one try, without redirects ─────────────────────────────────────────────────────────────────

_POST_SECONDS = 15.0  # as Standard Webhooks recommends: 15 to 30
_MAX_WAIT_DIGITS = 6


def send_message(request: Mapping[str, Any], context: ssl.SSLContext, refusal: Callable[[], str | None]) -> Answer:
    """Send a message, and return the status of the answer, or why there is none.

    `refusal` returns what the address guard refused in this thread.
    """
    parts = urlsplit(str(request["url"]))
    host, target = parts.hostname or "", parts.path or "/"
    connection = (
        http.client.HTTPSConnection(host, parts.port, timeout=_POST_SECONDS, context=context)
        if parts.scheme == "https"
        else http.client.HTTPConnection(host, parts.port, timeout=_POST_SECONDS)
    )
    headers = {"Content-Type": "application/json", "User-Agent": "wakeful", **request["headers"]}
    try:
        connection.request(
            "POST", f"{target}?{parts.query}" if parts.query else target, b64decode(request["body"]), headers
        )
        response = connection.getresponse()
        return _read_post_answer(response.status, response.headers.get("Retry-After"))
    except (OSError, http.client.HTTPException) as error:
        if refused := refusal():
            return {"error": refused}
        if isinstance(error, ssl.SSLCertVerificationError):
            return {"error": "its certificate is not trusted"}
        return {"error": f"it cannot be reached ({type(error).__name__})"}
    finally:
        connection.close()


def _read_post_answer(status: int, retry_after: str | None) -> Answer:
    if 200 <= status < 300:
        return {"status": status}
    answer: Answer = {"status": status, "error": f"it answered {status}"}
    if 300 <= status < 400:
        answer["error"] += ", a redirect, which is not followed"
    if retry_after is not None and retry_after.isdecimal() and len(retry_after) <= _MAX_WAIT_DIGITS:
        answer["retry_after"] = int(retry_after)
    return answer
