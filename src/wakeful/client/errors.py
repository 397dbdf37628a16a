"""Errors of the client. The server's own words are in the message, with the next step."""

from collections.abc import Mapping
from typing import Any


class WakefulClientError(Exception):
    """Base of every error of the client."""


class NotReached(WakefulClientError):
    """The server did not answer, or not in time."""


class Refused(WakefulClientError):
    """The server refused a request."""

    def __init__(self, message: str, *, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code  # such as `session_busy`; stable, for programs


class NotSignedIn(Refused):
    """There is no token, or the server does not know it."""


class NotFound(Refused):
    """It does not exist, or belongs to someone else."""


class ServerFailed(Refused):
    """The server failed, or something that it needs does not respond."""


class RunFailed(WakefulClientError):
    """The agent began to answer, and its run failed or was stopped. `text` is what it had said."""

    def __init__(self, message: str, *, code: str, text: str) -> None:
        super().__init__(message)
        self.code = code
        self.text = text


def to_error(status: int, body: object) -> Refused:
    """Return the error of a response, in the words of the server."""
    known = body.get("error") if isinstance(body, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    error: Mapping[str, Any] = known if isinstance(known, Mapping) else {}  # pyright: ignore[reportUnknownVariableType]
    message = " ".join(str(error[part]) for part in ("message", "hint") if error.get(part))
    kind = {401: NotSignedIn, 404: NotFound}.get(status, ServerFailed if status >= 500 else Refused)
    words = message or f"The server answered with the status {status} and no explanation. Is it a Wakeful server?"
    return kind(words, status=status, code=str(error.get("code", f"http_{status}")))
