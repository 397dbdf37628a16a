"""How much an agent's file may hold."""
# pyright: reportUnknownMemberType=false

from typing import NamedTuple

from wakeful.agentdb.files import files
from wakeful.agentdb.files.files import Raw

# What a write must leave of the quota. Deletes work in a full file, and the host can still note what it purges.
FOR_DELETING = 0.05
FOR_HOST = 0.02
WARN_AT = 0.80
FORGET_WARNING_AT = 0.60  # lower, because a full file that the host makes room in crosses the warning again and again
LEAST_PAGES = 32  # the host's own tables need some

_WARNED = "storage_warned"


class NoRoom(Exception):
    """Raised when a write would leave too little room, and SQLite had no reason to stop it."""


class FileUsage(NamedTuple):
    """What is used of the quota; `is_crossing` is true once each time it rises over the warning."""

    used: int
    quota: int
    is_crossing: bool = False


def most_pages(quota: int, reserve: float) -> int:
    """Return how many pages a write may leave the file with."""
    return max(LEAST_PAGES, int(quota // files.PAGE * (1 - reserve)))


def used_bytes(connection: Raw) -> int:
    pages = connection.pragma("page_count") - connection.pragma("freelist_count")
    return pages * files.PAGE


def check(connection: Raw, most_bytes: int, reserve: float, before: int) -> None:
    """Refuse a write that grew into what it must leave.

    SQLite's own limit is on the size of the file, so once a delete has made the file longer, its free pages are open to
    any write.
    """
    used = used_bytes(connection)
    if used > before and used > most_pages(most_bytes, reserve) * files.PAGE:
        raise NoRoom


def look(connection: Raw, quota: int) -> FileUsage:
    """Measure, inside the transaction that wrote, and remember whether people were warned."""
    used = used_bytes(connection)
    is_over = used >= quota * WARN_AT
    was_over = bool(connection.execute("SELECT 1 FROM _meta WHERE key = ?", (_WARNED,)).fetchone())
    if is_over and not was_over:
        connection.execute("INSERT INTO _meta VALUES (?, 'yes')", (_WARNED,))
    elif was_over and used < quota * FORGET_WARNING_AT:
        connection.execute("DELETE FROM _meta WHERE key = ?", (_WARNED,))
    return FileUsage(used, quota, is_over and not was_over)
