"""Errors of an agent's database.

A worker sends a Refusal to the server as JSON, which `to_error` turns into an error that every door can show.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from wakeful.core.errors import (
    Conflict,
    DiskFull,
    Forbidden,
    Invalid,
    LimitReached,
    NotFound,
    Unavailable,
    WakefulError,
)
from wakeful.core.resources import OutOfResources
from wakeful.core.zones import write_time

Kind = Literal[
    "invalid",
    "not_found",
    "refused",
    "conflict",
    "limit",
    "quota",
    "timeout",
    "locked",
    "unreadable",
    "disk_full",
    "exhausted",
    "unavailable",
    "malformed",
]


FREE_AT = (
    "{free_at}"  # in a message: the time from which the request may succeed, which a worker cannot write in a zone
)


class Refusal(Exception):
    """An error raised inside a worker; FREE_AT in its message stands for `free_at`."""

    def __init__(
        self,
        kind: Kind,
        message: str,
        *,
        field: str | None = None,
        hint: str | None = None,
        free_at: datetime | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: Kind = kind
        self.message = message
        self.field = field
        self.hint = hint
        self.free_at = free_at

    def as_values(self) -> dict[str, Any]:
        values = {"kind": self.kind, "message": self.message, "field": self.field, "hint": self.hint}
        return values if self.free_at is None else values | {"free_at": self.free_at.isoformat()}


class DataInvalid(Invalid):
    code = "data_invalid"


class DataNotFound(NotFound):
    code = "data_not_found"


class DataRefused(Forbidden):
    """The sandbox does not allow the statement."""

    code = "data_refused"


class DataConflict(Conflict):
    code = "data_conflict"


class DataLimit(LimitReached):
    code = "data_limit"


class QuotaReached(LimitReached):
    code = "data_quota"


class DataTimeout(LimitReached):
    code = "data_timeout"


class DatabaseLocked(Conflict):
    """The file exists, but its key does not."""

    code = "database_locked"


class DatabaseUnreadable(Conflict):
    """The key is right, but the file was not encrypted with it, or is damaged."""

    code = "database_unreadable"


class DatabaseUnavailable(Unavailable):
    code = "database_unavailable"


class DatabaseMalformed(DatabaseUnavailable):
    """SQLite could not use a page: the disk failed, or the file is damaged."""


_CLASSES: dict[Kind, type[WakefulError]] = {
    "invalid": DataInvalid,
    "not_found": DataNotFound,
    "refused": DataRefused,
    "conflict": DataConflict,
    "limit": DataLimit,
    "quota": QuotaReached,
    "timeout": DataTimeout,
    "locked": DatabaseLocked,
    "unreadable": DatabaseUnreadable,
    "disk_full": DiskFull,
    "exhausted": OutOfResources,
    "unavailable": DatabaseUnavailable,
    "malformed": DatabaseMalformed,
}
_KINDS: dict[type, Kind] = {
    **{known: kind for kind, known in _CLASSES.items()},
    Invalid: "invalid",
    NotFound: "not_found",
    Forbidden: "refused",
    Conflict: "conflict",
    LimitReached: "limit",
    Unavailable: "unavailable",
    WakefulError: "unavailable",
}


def kind_of(error: WakefulError) -> Kind:
    """Return the kind of an error, of a database or of another part of the server."""
    return next(_KINDS[each] for each in type(error).__mro__ if each in _KINDS)


def is_retryable(error: WakefulError) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(error, LimitReached) and error.seconds is not None:
        return True
    return kind_of(error) in ("timeout", "disk_full", "exhausted", "unavailable", "malformed")


def to_error(values: dict[str, Any], zone: str, at: str) -> WakefulError:
    """Return the error for a refusal that a worker sent to a request made at a time, with times in a zone."""
    message, free_at = values["message"], values.get("free_at")
    if free_at is not None:
        message = message.replace(FREE_AT, write_time(datetime.fromisoformat(free_at), zone))
    error = _CLASSES[values["kind"]](message, field=values.get("field"), hint=values.get("hint"))
    if free_at is not None and isinstance(error, LimitReached):
        error.seconds = int((datetime.fromisoformat(free_at) - datetime.fromisoformat(at)).total_seconds())
    return error


# Types of columns in agents' databases.


ColumnType = Literal["text", "integer", "real", "boolean", "date", "datetime", "json", "blob"]

# The type that SQLite stores each of them in.
STORAGE: Mapping[ColumnType, str] = {
    "text": "TEXT",
    "integer": "INTEGER",
    "real": "REAL",
    "boolean": "INTEGER",
    "date": "TEXT",
    "datetime": "TEXT",
    "json": "TEXT",
    "blob": "BLOB",
}
