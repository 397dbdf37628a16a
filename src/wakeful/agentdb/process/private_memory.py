"""Protect the memory of a process that has keys."""

import ctypes
import resource
import sys

_PR_SET_DUMPABLE = 4


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
