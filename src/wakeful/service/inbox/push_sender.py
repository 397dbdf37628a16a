"""Send encrypted push messages to push services, inside the channel process: HTTPS only, without redirects."""

import http.client
import ssl
import time
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

_PAUSES = (1.0, 3.0)  # seconds between the three tries
_MAX_SHORT_WAIT = 5  # seconds that are waited for here when the push service asks for them
_USUAL_WAIT = 60  # seconds, if it does not say how long
_MAX_DIGITS = 9
_TOO_MANY = 429

Answer = dict[str, Any]


def send(request: Mapping[str, Any], context: ssl.SSLContext, refusal: Callable[[], str | None]) -> Answer:
    """Send one message, again after an error of the service, and return its status or why it failed.

    `refusal` returns what the address guard refused in this thread.
    """
    answer: Answer = {}
    for pause in (*_PAUSES, None):
        answer = _try(request, context, refusal)
        wait = _wait_of(answer, pause)
        if wait is None:
            return answer
        time.sleep(wait)
    return answer


def _try(request: Mapping[str, Any], context: ssl.SSLContext, refusal: Callable[[], str | None]) -> Answer:
    parts = urlsplit(str(request["endpoint"]))
    target = parts.path or "/"
    connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=60, context=context)
    try:
        body = b64decode(request["body"])
        connection.request("POST", f"{target}?{parts.query}" if parts.query else target, body, request["headers"])
        response = connection.getresponse()
        return _read(response.status, response.headers.get("Retry-After"))
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


def _read(status: int, retry_after: str | None) -> Answer:
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
