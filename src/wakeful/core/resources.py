"""Limited system resources: file descriptors, processes, memory, disk space; and memory that holds keys."""

# pyright: reportUnknownMemberType=false
import ctypes
import errno
import os
import resource
import sys
from pathlib import Path
from typing import cast

from wakeful.core.errors import DiskFull, Unavailable, WakefulError

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_LACKING = {
    errno.EMFILE: "file descriptors",
    errno.ENFILE: "file descriptors",
    errno.ENOMEM: "memory",
}
MIN_FREE = 100 * 10**6  # bytes; below it, the store may not be able to save the next hours
_MIN_SHARE = 0.05  # a small disk is not nearly full before
_PR_SET_DUMPABLE = 4


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


def find_shortages() -> list[str]:
    """Return the resources that this process has run out of, as a list of problems."""
    return [] if has_descriptor() else ["the server has no file descriptors left"]


def find_disk_shortage(folder: Path) -> str | None:
    """Return what a folder's disk is short of, in words for people."""
    disk = os.statvfs(folder)
    free, share = disk.f_bavail * disk.f_frsize, disk.f_bavail / max(disk.f_blocks, 1)
    if free < MIN_FREE and share < _MIN_SHARE:
        return f"{free / 10**6:.1f} MB free ({share:.0%})"
    if disk.f_files and disk.f_favail == 0:  # some file systems have no fixed number of them
        return "no inodes left, so no file can be created"
    return None


def shortage(error: Exception) -> Unavailable | None:
    """Return the resource that has run out, if an error comes from that.

    Libraries may hide it: without a file descriptor, a host name lookup fails as "not known". So we try to open one.
    """
    found = find_shortage(error)
    if found is None and not isinstance(error, WakefulError) and not has_descriptor():
        return lacking("file descriptors")
    return found


def hide_memory() -> bool:
    """Make memory, environment and open files unreadable to other processes of the same user.

    It also disables core dumps, which would contain keys. Child programs are not protected. Returns False on systems
    other than Linux, where it only disables core dumps.
    """
    if sys.platform != "linux":
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        return False
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_DUMPABLE")
    return True


def has_descriptor() -> bool:
    """Return whether another file can be opened."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    return True
