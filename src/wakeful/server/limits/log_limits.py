"""Rate limit for log records that unauthenticated clients can cause, so that they cannot fill the log."""

import logging
from collections.abc import Generator
from contextlib import contextmanager

from wakeful.clock import Clock

MAX_A_MINUTE = 20
_MAX_KINDS = 100

# uvicorn logs every request that it cannot parse and every refused socket, asyncio connections that it cannot accept.
_LOGGERS = ("uvicorn.error", "asyncio")


class Repeats(logging.Filter):
    """Passes the first few records of a kind per minute, and adds to the next how many were left out."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._since = 0.0
        self._logged: dict[object, int] = {}  # in this minute, by kind
        self._left_out: dict[object, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now, kind = self._clock.monotonic(), record.msg  # the message before its arguments are inserted
        if now - self._since >= 60:
            self._since = now
            self._logged.clear()
        if self._logged.get(kind, 0) >= MAX_A_MINUTE or len(self._logged) >= _MAX_KINDS:
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return False
        self._logged[kind] = self._logged.get(kind, 0) + 1
        if left_out := self._left_out.pop(kind, 0):
            record.msg = f"{record.msg} ({left_out} more like it were left out)"
        return True


@contextmanager
def bounded_logs(clock: Clock) -> Generator[None]:
    """Limit the loggers of uvicorn and asyncio inside the block."""
    repeats = Repeats(clock)
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for each in loggers:
        each.addFilter(repeats)
    try:
        yield
    finally:
        for each in loggers:
            each.removeFilter(repeats)
