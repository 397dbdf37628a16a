"""Errors: a class per fact, under a few kinds."""

from typing import ClassVar


class WakefulError(Exception):
    """Base of every error that a caller can handle."""

    code: ClassVar[str] = "error"
    text: ClassVar[str] = ""  # the message, if it has no arguments
    field: str | None = None
    hint: str | None = None

    def __init__(self, message: str | None = None, *, field: str | None = None, hint: str | None = None) -> None:
        self.message = message or self.text
        super().__init__(self.message)
        self.field = field or self.field
        self.hint = hint or self.hint


class Invalid(WakefulError):
    """The request itself is wrong; the same request will always be refused."""

    code = "invalid"


class NotFound(WakefulError):
    """It does not exist, or belongs to someone else."""

    code = "not_found"


class Conflict(WakefulError):
    """The request is fine, but not in the present state."""

    code = "conflict"


class LimitReached(WakefulError):
    """A limit does not allow it."""

    code = "limit_reached"

    def __init__(
        self,
        message: str | None = None,
        *,
        field: str | None = None,
        hint: str | None = None,
        seconds: int | None = None,
    ) -> None:
        super().__init__(message, field=field, hint=hint)
        self.seconds = seconds  # until it is possible again, if that is known


class Forbidden(WakefulError):
    """The caller may not do this."""

    code = "forbidden"


class Unavailable(WakefulError):
    """Something that the server depends on does not respond; the same request may work later."""

    code = "unavailable"


class StoreUnavailable(Unavailable):
    """The server's own database does not respond, or refuses to write; the caller did nothing wrong."""

    code = "store_unavailable"

    def __init__(self, message: str | None = None, *, is_in_doubt: bool = False) -> None:
        super().__init__(message)
        self.is_in_doubt = is_in_doubt  # the change may have been made: the response was lost


class StoreBusy(StoreUnavailable):
    """Another transaction holds a lock on a row for too long."""

    code = "store_busy"
    text = (
        "Another node holds a lock on what this would change and has not released it in time, so nothing was "
        "changed. If that node has stopped, PostgreSQL releases it within a few seconds. Try again then."
    )


class DiskFull(Unavailable):
    """The disk of the data directory is full (not a quota)."""

    code = "disk_full"
    text = "The server's disk is full, so nothing was written. Try again when its operator has freed space."
