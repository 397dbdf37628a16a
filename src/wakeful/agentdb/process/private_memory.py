"""The memory of a process that holds keys."""

import ctypes

_PR_SET_DUMPABLE = 4


def hide_memory() -> None:
    """Keep other processes of the same user out of this one: its memory, environment and open files.

    It also writes no core dump any more, which would hold keys. A program that this process starts is not hidden.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_DUMPABLE")
