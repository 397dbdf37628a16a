"""What can go wrong, a class per fact under a few kinds.

The message names the value and the next step; model, CLI and browser show it unchanged.
"""

from typing import ClassVar


class WakefulError(Exception):
    """Base of every error that a caller can answer."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.hint = hint


class Invalid(WakefulError):
    """The request itself is wrong; the same request will always be refused."""

    code = "invalid"


class NotFound(WakefulError):
    """What was asked for does not exist, or belongs to someone else."""

    code = "not_found"


class Conflict(WakefulError):
    """The request is fine, but not in the present state."""

    code = "conflict"


class LimitReached(WakefulError):
    """A bound that people set stands in the way."""

    code = "limit_reached"


class Forbidden(WakefulError):
    """The caller may not do this."""

    code = "forbidden"


class Unavailable(WakefulError):
    """Something we depend on does not answer; the same request may work later."""

    code = "unavailable"


class DiskFull(Unavailable):
    """The disk under the server's data has no room left; nobody's quota is meant."""

    code = "disk_full"

    def __init__(self, message: str | None = None, *, field: str | None = None, hint: str | None = None) -> None:
        words = "The server's disk is full, so nothing was written. Tell your user, and try again later."
        super().__init__(message or words, field=field, hint=hint)
