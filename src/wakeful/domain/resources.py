"""Limited system resources: file descriptors, processes, memory, disk space."""

import errno
from typing import cast

from wakeful.domain.errors import DiskFull, Unavailable

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_LACKING = {
    errno.EMFILE: "file descriptors",
    errno.ENFILE: "file descriptors",
    errno.ENOMEM: "memory",
}


class OutOfResources(Unavailable):
    """The server lacks something that comes back by itself; a run that needs it is released and tried again."""

    code = "out_of_resources"


def lacking(what: str) -> OutOfResources:
    return OutOfResources(
        f"The server has no {what} left, so this was not done. It works again once others are done; try again later."
    )


def words_of(error: Exception) -> str:
    """Say what an unexpected error is, without the path that an error of the system names."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{type(error).__name__}: {text}"


def find_shortage(error: BaseException) -> Unavailable | None:
    """Return what an error of the system means if something has run out, also when a library has wrapped it.

    The words name no path: those of the system's own errors do.
    """
    if isinstance(error, BlockingIOError) and error.errno == errno.EAGAIN:  # of fork; sockets' are never raised so far
        return lacking("processes")
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, DiskFull | OutOfResources):
            return each
        if isinstance(each, OSError) and each.errno in _LACKING:
            return lacking(_LACKING[each.errno])
        if isinstance(each, OSError) and each.errno in _DISK_FULL:
            return DiskFull()
        if isinstance(each, BaseExceptionGroup):
            waiting.extend(cast("BaseExceptionGroup[BaseException]", each).exceptions)
        waiting += [each.__cause__, each.__context__]
    return None
