"""Give memory back to the system after a large request. A worker lives as long as the server, and serves everyone."""

import ctypes
import gc
import resource
from pathlib import Path

GROWTH = 16 * 1024 * 1024  # bytes that are kept before it is worth the time, a few milliseconds

_STATM = Path("/proc/self/statm")
_PAGE = resource.getpagesize()


class Memory:
    """Watches how much of the machine's memory this process holds."""

    def __init__(self) -> None:
        # Of glibc: free() keeps what is not at the end of the heap, and this returns it. Others may not have it.
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        self._least = resident_bytes()

    def has_grown(self) -> bool:
        return resident_bytes() > self._least + GROWTH

    def give_back(self) -> None:
        """Free what nobody refers to any more, and return it to the system."""
        gc.collect()
        if self._trim is not None:
            self._trim(0)
        self._least = resident_bytes()


def resident_bytes() -> int:
    """Return how much memory this process has, or 0 where the system does not tell."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE
    except OSError:
        return 0
