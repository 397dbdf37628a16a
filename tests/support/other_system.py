"""A process without the parts of Linux that other systems lack: not macOS, but a test that we can do without them."""

import ctypes
import os
import select
import sys
import sysconfig
import time

_LINUX_ONLY = (
    (os, ("pidfd_open", "memfd_create", "eventfd", "sched_getaffinity", "O_PATH", "O_TMPFILE", "getrandom", "waitid")),
    (select, ("epoll",)),
    (time, ("CLOCK_BOOTTIME",)),
)
_CALLS = ("prctl", "syscall", "malloc_trim")  # of the C library


def take_linux_away() -> None:
    """Remove what only Linux has from this process: functions, calls of the C library, and /proc."""
    sysconfig.get_config_vars()  # it would look for a file of macOS
    sys.platform = "darwin"
    for module, names in _LINUX_ONLY:
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    ctypes.CDLL = _Library  # pyright: ignore[reportAttributeAccessIssue]
    sys.addaudithook(_refuse_proc)


def be_elsewhere() -> None:
    """Take Linux away from a process that was forked from one which has imported everything and tried to confine."""
    from wakeful.sandbox.rules import find_confinement

    take_linux_away()
    find_confinement.cache_clear()


class _Library(ctypes.CDLL):
    def __getattr__(self, name: str) -> object:
        if name in _CALLS:
            raise AttributeError(name)
        return super().__getattr__(name)


def _refuse_proc(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and str(arguments[0]).startswith("/proc/"):
        raise FileNotFoundError(2, "No such file or directory", arguments[0])
