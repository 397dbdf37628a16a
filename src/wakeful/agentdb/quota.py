"""How much an agent's file may hold."""
# pyright: reportUnknownMemberType=false

from typing import NamedTuple

from wakeful.agentdb import files
from wakeful.agentdb.files import Raw

RESERVE = 0.05  # of the quota: for deleting, and for the host
WARN_AT = 0.80
LEAST_PAGES = 32  # the host's own tables need some

_WARNED = "storage_warned"


class Usage(NamedTuple):
    """What is used of the quota; `is_crossing` is true once each time it rises over the warning."""

    used: int
    quota: int
    is_crossing: bool = False


def most_pages(quota: int, *, uses_reserve: bool) -> int:
    """Return how many pages a write may leave the file with."""
    pages = quota // files.PAGE
    return max(LEAST_PAGES, pages if uses_reserve else int(pages * (1 - RESERVE)))


def used_bytes(connection: Raw) -> int:
    pages = connection.pragma("page_count") - connection.pragma("freelist_count")
    return pages * files.PAGE


def look(connection: Raw, quota: int) -> Usage:
    """Measure, inside the transaction that wrote, and remember whether people were warned."""
    used = used_bytes(connection)
    is_over = used >= quota * WARN_AT
    was_over = bool(connection.execute("SELECT 1 FROM _meta WHERE key = ?", (_WARNED,)).fetchone())
    if is_over and not was_over:
        connection.execute("INSERT INTO _meta VALUES (?, 'yes')", (_WARNED,))
    elif was_over and not is_over:
        connection.execute("DELETE FROM _meta WHERE key = ?", (_WARNED,))
    return Usage(used, quota, is_over and not was_over)
