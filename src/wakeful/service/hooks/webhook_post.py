"""Send a message of a webhook, inside the channel process: one try, without redirects."""

import http.client
import ssl
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

_SECONDS = 15.0  # as Standard Webhooks recommends: 15 to 30
_MAX_DIGITS = 6

Answer = dict[str, Any]


def send(request: Mapping[str, Any], context: ssl.SSLContext, refusal: Callable[[], str | None]) -> Answer:
    """Send a message, and return the status of the answer, or why there is none.

    `refusal` returns what the address guard refused in this thread.
    """
    parts = urlsplit(str(request["url"]))
    host, target = parts.hostname or "", parts.path or "/"
    connection = (
        http.client.HTTPSConnection(host, parts.port, timeout=_SECONDS, context=context)
        if parts.scheme == "https"
        else http.client.HTTPConnection(host, parts.port, timeout=_SECONDS)
    )
    headers = {"Content-Type": "application/json", "User-Agent": "wakeful", **request["headers"]}
    try:
        connection.request(
            "POST", f"{target}?{parts.query}" if parts.query else target, b64decode(request["body"]), headers
        )
        response = connection.getresponse()
        return _read(response.status, response.headers.get("Retry-After"))
    except (OSError, http.client.HTTPException) as error:
        if refused := refusal():
            return {"error": refused}
        if isinstance(error, ssl.SSLCertVerificationError):
            return {"error": "its certificate is not trusted"}
        return {"error": f"it cannot be reached ({type(error).__name__})"}
    finally:
        connection.close()


def _read(status: int, retry_after: str | None) -> Answer:
    if 200 <= status < 300:
        return {"status": status}
    answer: Answer = {"status": status, "error": f"it answered {status}"}
    if 300 <= status < 400:
        answer["error"] += ", a redirect, which is not followed"
    if retry_after is not None and retry_after.isdecimal() and len(retry_after) <= _MAX_DIGITS:
        answer["retry_after"] = int(retry_after)
    return answer
