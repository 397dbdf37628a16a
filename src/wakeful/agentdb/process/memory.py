"""Return memory to the system after a large request. A worker lives as long as the server, and serves all agents."""

import ctypes
import gc
import resource
from pathlib import Path

GROWTH = 16 * 1024 * 1024  # bytes; trimming takes a few milliseconds, so less is not worth it

_STATM = Path("/proc/self/statm")
_PAGE = resource.getpagesize()


class Memory:
    """Watches the resident memory of this process."""

    def __init__(self) -> None:
        # glibc only: free() keeps memory that is not at the end of the heap, and malloc_trim returns it.
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        self._baseline = resident_bytes()

    def has_grown(self) -> bool:
        return resident_bytes() > self._baseline + GROWTH

    def trim(self) -> None:
        """Collect garbage, and return free memory to the system."""
        gc.collect()
        if self._trim is not None:
            self._trim(0)
        self._baseline = resident_bytes()


def resident_bytes() -> int:
    """Return the resident memory of this process, or 0 where the system does not say."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE
    except OSError:
        return 0
