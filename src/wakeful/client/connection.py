"""HTTP options, errors and answers, for both clients."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import httpx2

from wakeful.client.errors import NotReached, Refused, to_error
from wakeful.client.target import Target

TIMEOUT = 60.0  # seconds without a byte; a stream sends something every 10


def options(target: Target, timeout: float) -> dict[str, Any]:
    """Return the options of an HTTP client for a server."""
    is_encrypted = target.url.lower().startswith("https:")

    def authorize(request: httpx2.Request) -> httpx2.Request:
        request.headers["Authorization"] = target.authorize()
        return request

    return {
        "base_url": target.url,
        "auth": authorize,
        "timeout": timeout,
        # Without TLS it is this machine: no proxy, and no certificates, which take longer to load than a request.
        "trust_env": is_encrypted,
        "verify": is_encrypted,
    }


@contextmanager
def explained(target: Target) -> Generator[None]:
    """Say which server did not answer, and what to do about it."""
    try:
        yield
    except httpx2.TimeoutException:
        raise NotReached(f"The server at {target.url} did not answer in time. Try again later.") from None
    except httpx2.HTTPError as error:
        raise NotReached(
            f"The server at {target.url} cannot be reached: {error or type(error).__name__}. Is it running? "
            "`wakeful status` shows it on its machine."
        ) from error


def read(response: httpx2.Response) -> Any:
    """Return the JSON of an answer, or raise the server's error."""
    if not response.is_success:
        raise refusal(response)
    return response.json()


def refusal(response: httpx2.Response) -> Refused:
    try:
        body = response.json()
    except ValueError:
        body = None
    return to_error(response.status_code, body)
