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
    """The server lacks something that becomes free by itself; a run that needs it is released and retried."""

    code = "out_of_resources"


def lacking(what: str) -> OutOfResources:
    return OutOfResources(
        f"The server has no {what} left, so this was not done. Try again when other work has finished."
    )


def words_of(error: Exception) -> str:
    """Return the type and text of an unexpected error; an OSError without the path it names."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{type(error).__name__}: {text}"


def remedy_of(error: OSError, otherwise: str) -> str:
    """Return what to do about a file that could not be written: a full disk needs space, not permissions."""
    return "Free space on its disk, then try again." if error.errno in _DISK_FULL else otherwise


def find_shortage(error: BaseException) -> Unavailable | None:
    """Return the error to report if a resource has run out, also when a library has wrapped the OSError.

    Its text names no path, unlike that of the OSError.
    """
    if (
        isinstance(error, BlockingIOError) and error.errno == errno.EAGAIN
    ):  # from fork; asyncio handles those of sockets
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
