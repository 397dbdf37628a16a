"""A line on standard error about something that takes longer than a second, only on a terminal."""

import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

_PATIENCE = 1.0  # seconds without a line
_CLEAR = "\r\x1b[K"


@contextmanager
def progress(what: str) -> Generator[None]:
    """Show what the block waits for, and for how long; the line is erased at the end."""
    if not sys.stderr.isatty():
        yield
        return
    is_over = threading.Event()
    ticking = threading.Thread(target=_tick, args=(what, is_over), daemon=True)
    ticking.start()
    try:
        yield
    finally:
        is_over.set()
        ticking.join()


def _tick(what: str, is_over: threading.Event) -> None:
    began = time.monotonic()
    while not is_over.wait(_PATIENCE):
        sys.stderr.write(f"{_CLEAR}{what}… {time.monotonic() - began:.0f} s")
        sys.stderr.flush()
    if time.monotonic() - began >= _PATIENCE:
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()
