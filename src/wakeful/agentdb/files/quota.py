"""The quota of an agent's file."""

from typing import NamedTuple

from wakeful.agentdb.files import files
from wakeful.agentdb.files.files import Raw

# Shares of the quota that a write must leave: deletes work in a full file, and so do the host's purge entries.
FOR_DELETING = 0.05
FOR_HOST = 0.02
WARN_AT = 0.80
RESET_WARNING_AT = 0.60  # lower: a full file that the host makes room in would cross the warning again and again
MIN_PAGES = 32  # for the host's own tables

_WARNED = "storage_warned"


class NoRoom(Exception):
    """A write would leave too little space, and SQLite did not refuse it."""


class FileUsage(NamedTuple):
    """Use of the quota; `is_crossing` is true for the write that crosses the warning."""

    used: int
    quota: int
    is_crossing: bool = False


def max_pages(quota: int, reserve: float) -> int:
    """Return how many pages the file may have after a write."""
    return max(MIN_PAGES, int(quota // files.PAGE * (1 - reserve)))


def used_bytes(connection: Raw) -> int:
    pages = connection.pragma("page_count") - connection.pragma("freelist_count")
    return pages * files.PAGE


def check(connection: Raw, quota: int, reserve: float, before: int) -> None:
    """Refuse a write that used some of the reserve.

    SQLite limits the size of the file, so once a delete has grown the file into the reserve, any write could use its
    free pages.
    """
    used = used_bytes(connection)
    if used > before and used > max_pages(quota, reserve) * files.PAGE:
        raise NoRoom


def measure(connection: Raw, quota: int) -> FileUsage:
    """Measure usage inside the transaction that wrote, and store whether the warning was given."""
    used = used_bytes(connection)
    is_over = used >= quota * WARN_AT
    was_over = bool(connection.execute("SELECT 1 FROM _meta WHERE key = ?", (_WARNED,)).fetchone())
    if is_over and not was_over:
        connection.execute("INSERT INTO _meta VALUES (?, 'yes')", (_WARNED,))
    elif was_over and used < quota * RESET_WARNING_AT:
        connection.execute("DELETE FROM _meta WHERE key = ?", (_WARNED,))
    return FileUsage(used, quota, is_over and not was_over)
