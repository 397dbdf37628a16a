"""Errors of the store, its health, and retrying while it is unavailable."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from wakeful.core.errors import NotFound, StoreBusy, StoreUnavailable, Unavailable

# Errors of the store itself.


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


class StoreIsOlder(Unavailable):
    code = "store_is_older"

    def __init__(self, found: int) -> None:
        super().__init__(
            f"The store was written by a version before 0.2 (schema {found}). Nothing was changed. Start 0.2 once, "
            "then 0.3."
        )


class OlderNodesRunning(Unavailable):
    """0.2 does not know the schema of 0.3: both at once would be wrong about what the other one writes."""

    code = "older_nodes_running"

    def __init__(self, names: Sequence[str], lease: timedelta) -> None:
        super().__init__(
            f"Nodes of 0.2 are running on this PostgreSQL database: {', '.join(names)}. Nothing was changed. Stop all "
            "nodes, then start 0.3; one that was killed counts as running for "
            f"{lease.total_seconds():.0f} seconds (lease_seconds)."
        )


class FilesNotInHomes(Unavailable):
    """0.1 kept agents' files in the data directory of one node, from where 0.2 moves them into PostgreSQL."""

    code = "files_not_in_homes"

    def __init__(self, places: Sequence[tuple[str, str]]) -> None:
        found = "; ".join(f"agent {agent_id!r} in {place!r}" for agent_id, place in places)
        super().__init__(
            f"The databases and files of these agents are not in PostgreSQL yet: {found}. Nothing was changed. Start "
            "0.2 with that data directory once, which moves them, then 0.3."
        )


class BrokenReference(NotFound):
    """A row names another one that is not there, or takes an identity that is taken."""

    code = "broken_reference"

    def __init__(self, detail: str) -> None:
        super().__init__(f"The store refused a row that does not fit the others ({detail}). Nothing was changed.")


# Health of the store: noted with every use, and logged once per outage instead of by each caller.


log = logging.getLogger(__name__)

# A full disk lets small writes through and refuses others: one that comes through does not mean that it is over.
_QUIET = 2.0  # seconds without a failure, after which a write that works ends the trouble
_STALE = 30.0  # seconds after which a failure says nothing any more, if nobody has tried since
_SAY_AGAIN = 60.0


class StoreHealth:
    """The last trouble with the store, until it is over."""

    def __init__(self) -> None:
        self._error: StoreUnavailable | None = None
        self._since = 0.0
        self._failed_at = 0.0
        self._failures = 0
        self._logged_at: dict[str, float] = {}  # by the error's code

    @property
    def problem(self) -> str | None:
        """Return what is wrong with the store at present, in words for people."""
        if self._error is None or time.monotonic() - self._failed_at > _STALE:
            return None
        return self._error.message

    @contextmanager
    def noted(self, *, is_write: bool) -> Generator[None]:
        """Note how the block ends. Only a write shows that the store works: a read-only one can be read as well."""
        try:
            yield
        except (StoreClosed, StoreBusy):  # a single locked row does not mean that the store is broken
            raise
        except StoreUnavailable as error:
            self._note_failure(error)
            raise
        if is_write and self._error is not None:
            self._note_write()

    def _note_failure(self, error: StoreUnavailable) -> None:
        now = time.monotonic()
        if self._error is None:
            self._since, self._failures = now, 0
        self._error, self._failed_at = error, now
        self._failures += 1
        if now - self._logged_at.get(error.code, -_SAY_AGAIN) >= _SAY_AGAIN:
            self._logged_at[error.code] = now
            log.warning(
                "store unavailable",
                extra={"code": error.code, "problem": error.message, "failures": self._failures},
            )

    def _note_write(self) -> None:
        now = time.monotonic()
        if now - self._failed_at < _QUIET:
            return
        self._error = None
        log.info("store works again", extra={"after_seconds": round(now - self._since, 1), "failures": self._failures})


# Retries while the store is unavailable, for operations that may run twice.


T = TypeVar("T")

PAUSE = 0.3  # seconds


async def insist(act: Callable[[], Awaitable[T]], on: type[Unavailable] = StoreUnavailable) -> T:
    """Retry until it succeeds or the caller is cancelled. The store logs that it is unavailable."""
    while True:
        try:
            return await act()
        except on:
            await asyncio.sleep(PAUSE)
