"""Errors of the store itself."""

from pathlib import Path

from wakeful.domain.errors import NotFound, StoreBusy, StoreUnavailable, Unavailable

__all__ = [
    "BrokenReference",
    "ConnectionLost",
    "NotificationsLost",
    "StoreBusy",
    "StoreClosed",
    "StoreFull",
    "StoreInUse",
    "StoreIsNewer",
    "StoreReadOnly",
    "StoreUnavailable",
    "StoreUnreadable",
]


class StoreClosed(StoreUnavailable):
    def __init__(self) -> None:
        super().__init__("The store is closed.")


class ConnectionLost(StoreUnavailable):
    """The connection broke. With another one the same may work at once."""


class NotificationsLost(StoreUnavailable):
    code = "notifications_lost"

    def __init__(self) -> None:
        super().__init__(
            "PostgreSQL's notifications (LISTEN and NOTIFY) do not reach this server, so it would not see what other "
            "nodes do. WAKEFUL_DATABASE_URL probably leads through a connection pooler in transaction mode. Set "
            "pool_mode = session in PgBouncer for this database, or connect to PostgreSQL directly. Nothing was "
            "changed."
        )


class StoreFull(StoreUnavailable):
    code = "store_full"

    def __init__(self, place: str) -> None:
        super().__init__(f"The disk that holds {place} is full, so nothing was changed. Free some space and try again.")


class StoreReadOnly(StoreUnavailable):
    code = "store_read_only"


class StoreUnreadable(StoreUnavailable):
    """The files are there, but cannot be used as they are. SQLite says so too when a disk fails to read a page."""

    code = "store_unreadable"


class StoreInUse(Unavailable):
    code = "store_in_use"

    def __init__(self, path: Path, pid: str) -> None:
        super().__init__(
            f"The data directory {str(path)!r} is in use by another Wakeful process (pid {pid}). "
            "Stop that one first, or give this one its own WAKEFUL_DATA_DIR."
        )


class StoreIsNewer(Unavailable):
    code = "store_is_newer"

    def __init__(self, found: int, known: int) -> None:
        super().__init__(
            f"The store was written by a newer Wakeful (schema {found}, this version knows {known}). "
            "Nothing was changed. Install the newer version again, or restore a backup made before the upgrade."
        )


class BrokenReference(NotFound):
    """A row names another one that is not there, or takes an identity that is taken."""

    code = "broken_reference"

    def __init__(self, detail: str) -> None:
        super().__init__(f"The store refused a row that does not fit the others ({detail}). Nothing was changed.")
