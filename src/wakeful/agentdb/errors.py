"""What an agent's database can refuse.

A worker sends a refusal over its pipe as plain values; this side makes the error of it that every door can show.
"""

from typing import Any, Literal

from wakeful.domain.errors import (
    Conflict,
    DiskFull,
    Forbidden,
    Invalid,
    LimitReached,
    NotFound,
    Unavailable,
    WakefulError,
)
from wakeful.domain.resources import OutOfResources

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
]


class Refusal(Exception):
    """Raised inside a worker, where nothing of the server is known."""

    def __init__(self, kind: Kind, message: str, *, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.kind: Kind = kind
        self.message = message
        self.field = field
        self.hint = hint

    def as_values(self) -> dict[str, Any]:
        return {"kind": self.kind, "message": self.message, "field": self.field, "hint": self.hint}


class DataInvalid(Invalid):
    code = "data_invalid"


class DataNotFound(NotFound):
    code = "data_not_found"


class DataRefused(Forbidden):
    """The sandbox does not let this statement do what it wants."""

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
    """The file is there, and its key is not."""

    code = "database_locked"


class DatabaseUnreadable(Conflict):
    """Its key is right, and the file is not what was encrypted with it."""

    code = "database_unreadable"


class DatabaseUnavailable(Unavailable):
    code = "database_unavailable"


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
}
_FAMILIES: dict[type[WakefulError], Kind] = {
    Invalid: "invalid",
    NotFound: "not_found",
    Forbidden: "refused",
    Conflict: "conflict",
    LimitReached: "limit",
    Unavailable: "unavailable",
}


# What people have where an agent has a tool. The commands are in docs/cli.md, and the routes behind them do the same.
_FOR_PEOPLE = {
    "db_query only reads": "a query only reads",
    "the db_* tools": "`wakeful db`",
    "Tell your user, and try again later": "Make room on it, or tell whoever runs the server; then try again",
    "ask your user for more room": "give it more room: `wakeful agent edit --database-mb`",
    "db_schema": "`wakeful db schema`",
    "db_create_table": "`wakeful db create`",
    "db_alter_table": "`wakeful db alter`",
    "db_migrate": "`wakeful db migrate`",
    "db_insert": "`wakeful db add`",
    "db_upsert": "`wakeful db upsert`",
    "db_update": "`wakeful db edit`",
    "db_delete": "`wakeful db delete`",
    "db_restore": "`wakeful db restore`",
    "db_query": "`wakeful db query`",
    "db_execute": "`wakeful db execute`",
    "db_define_view": "`wakeful db save-view`",
    "db_drop_view": "`wakeful db drop-view`",
}


def for_people(message: str) -> str:
    """Word the next step for someone who has commands instead of tools."""
    for tool, words in _FOR_PEOPLE.items():
        message = message.replace(tool, words)
    return message


def kind_of(error: WakefulError) -> Kind:
    """Return the kind of any error, our own or one of the server's rooms."""
    own: dict[type[Any], Kind] = {known: kind for kind, known in _CLASSES.items()}
    for each in type(error).__mro__:
        kind = own.get(each) or _FAMILIES.get(each)
        if kind is not None:
            return kind
    return "unavailable"


def is_retryable(error: WakefulError) -> bool:
    """Tell whether the same request may work later."""
    return kind_of(error) in ("timeout", "disk_full", "exhausted", "unavailable")


def to_error(values: dict[str, Any]) -> WakefulError:
    """Make the error of what a worker sent."""
    return _CLASSES[values["kind"]](values["message"], field=values.get("field"), hint=values.get("hint"))
