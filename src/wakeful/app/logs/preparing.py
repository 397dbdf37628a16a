"""Prepares log records: the ids of their run, quiet libraries, one traceback for many failures of a kind."""

import logging
import time
from collections.abc import Callable

from wakeful.service.runs.run_context import run_fields

VERDICT = "wakeful_verdict"  # attribute of a record that was prepared

_OURS = "wakeful"
_SECONDS = 60.0
_MAX_LINES = 20  # of one kind of failure per minute, the first with its traceback
_MAX_KINDS = 200


class Preparing(logging.Filter):
    """Prepares each record once, for whichever handler sees it first.

    Libraries log requests with their content and headers below the level of a warning, and some set their own level
    from the environment; such records are dropped here.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._failures = _Failures(monotonic)

    def filter(self, record: logging.LogRecord) -> bool:
        verdict: bool | None = record.__dict__.get(VERDICT)
        if verdict is None:
            verdict = record.__dict__[VERDICT] = self._prepare(record)
        return verdict

    def _prepare(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING and record.name.partition(".")[0] != _OURS:
            return False
        for name, value in run_fields().items():
            record.__dict__.setdefault(name, value)
        return not record.exc_info or self._failures.take(record)


class _Failures:
    """Counts records with a traceback by their kind: logger, message and type of the exception."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._since = float("-inf")
        self._logged: dict[object, int] = {}  # in this minute
        self._left_out: dict[object, int] = {}

    def take(self, record: logging.LogRecord) -> bool:
        """Return whether to log a failure; all but the first of its kind in a minute lose their traceback."""
        now = self._monotonic()
        if now - self._since >= _SECONDS:
            self._since = now
            self._logged.clear()
        error = record.exc_info[1] if record.exc_info else None
        kind = record.name, record.msg, type(error)
        count = self._logged.get(kind, 0)
        if count >= _MAX_LINES or (count == 0 and len(self._logged) >= _MAX_KINDS):
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return False
        self._logged[kind] = count + 1
        if left_out := self._left_out.pop(kind, 0):
            record.__dict__["left_out"] = left_out
        if count:
            record.__dict__.setdefault("error", f"{type(error).__name__}: {error}")
            record.exc_info = None
        return True
