"""Protect the memory of a process that has keys."""

import ctypes

_PR_SET_DUMPABLE = 4


def hide_memory() -> None:
    """Make memory, environment and open files unreadable to other processes of the same user.

    It also disables core dumps, which would contain keys. Child programs are not protected.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_DUMPABLE")
